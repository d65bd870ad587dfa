/** The component's imports, as the engine binds them. A refusal is thrown as an error with a `payload`. */

declare module "keyrail:handler/state@0.1.0" {
  export function get(name: string): Uint8Array | null | undefined;
  export function put(name: string, value: Uint8Array): void;
  export function remove(name: string): void;
}

declare module "keyrail:handler/outbox@0.1.0" {
  export function emit(message: import("./host.ts").RawMessage): string;
}

declare module "keyrail:handler/logging@0.1.0" {
  export function log(level: import("./host.ts").Level, context: string, message: string): void;
}

declare module "wasi:random/random@0.2.6" {
  export function getRandomBytes(length: number): Uint8Array;
}
