/** What a handler says of itself, in the shape of the WIT contract. */

import type { FieldType } from "./message.ts";

export type Role = "event-handler" | "command-handler" | "process-manager";

export interface MessageType {
  category: string;
  name: string;
  version: number;
  fields: { name: string; kind: FieldType; required: boolean }[];
}

export interface Correlation {
  category: string;
  message: string;
  field: string;
}

export type SequentialBy =
  | { tag: "unordered" }
  | { tag: "field"; val: string }
  | { tag: "correlation"; val: Correlation[] };

export interface Metadata {
  name: string;
  version: string;
  role: Role;
  handles: MessageType[];
  sequentialBy: SequentialBy;
  options: [string, string][];
}
