/**
 * UTF-8 both ways, as the Encoding Standard says: lone surrogates and bad bytes become U+FFFD, each byte sequence by its
 * longest valid part; `fatal` throws instead; a byte order mark at the start is dropped unless `ignoreBOM`.
 */

const REPLACEMENT = 0xfffd;
/** How many code units one call of `fromCharCode` takes: engines limit a call's arguments. */
const CHUNK_UNITS = 4096;
/** Most text is ASCII, and an interpreter's loops are slow: such text goes through the engine's own functions. */
const BEYOND_ASCII = /[^\x00-\x7f]/;

export class TextEncoder {
  readonly encoding = "utf-8";

  encode(text: string = ""): Uint8Array {
    if (!BEYOND_ASCII.test(text)) {
      const bytes = new Uint8Array(text.length);
      for (let at = 0; at < bytes.length; at += 1) bytes[at] = text.charCodeAt(at);
      return bytes;
    }
    const bytes = new Uint8Array(text.length * 3);
    let length = 0;
    for (let at = 0; at < text.length; at += 1) {
      let code = text.charCodeAt(at);
      if (code < 0x80) {
        bytes[length++] = code;
        continue;
      }
      if (code >= 0xd800 && code < 0xe000) {
        const low = text.charCodeAt(at + 1);
        if (code < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
          code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
          at += 1;
        } else {
          code = REPLACEMENT;
        }
      }
      if (code < 0x800) {
        bytes[length++] = 0xc0 | (code >> 6);
      } else {
        if (code < 0x10000) {
          bytes[length++] = 0xe0 | (code >> 12);
        } else {
          bytes[length++] = 0xf0 | (code >> 18);
          bytes[length++] = 0x80 | ((code >> 12) & 0x3f);
        }
        bytes[length++] = 0x80 | ((code >> 6) & 0x3f);
      }
      bytes[length++] = 0x80 | (code & 0x3f);
    }
    return bytes.slice(0, length);
  }
}

export class TextDecoder {
  readonly encoding = "utf-8";
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;

  constructor(label = "utf-8", options: { fatal?: boolean; ignoreBOM?: boolean } = {}) {
    if (!/^utf-?8$/i.test(label)) throw new RangeError(`only UTF-8 is known, not ${label}`);
    this.fatal = options.fatal ?? false;
    this.ignoreBOM = options.ignoreBOM ?? false;
  }

  decode(input: ArrayBuffer | ArrayBufferView = new Uint8Array()): string {
    const bytes =
      input instanceof ArrayBuffer ? new Uint8Array(input) : new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
    if (bytes.length <= CHUNK_UNITS) {
      const latin = String.fromCharCode.apply(null, bytes as unknown as number[]);
      if (!BEYOND_ASCII.test(latin)) return latin;
    }
    const mark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
    let text = "";
    let units: number[] = [];
    for (let at = mark && !this.ignoreBOM ? 3 : 0; at < bytes.length; ) {
      const first = bytes[at++] ?? 0;
      if (first < 0x80) {
        units.push(first);
      } else {
        const { code, end } = this.#sequence(bytes, first, at);
        at = end;
        if (code < 0x10000) units.push(code);
        else units.push(0xd7c0 + (code >> 10), 0xdc00 | (code & 0x3ff));
      }
      if (units.length >= CHUNK_UNITS) {
        text += String.fromCharCode(...units);
        units = [];
      }
    }
    return text + String.fromCharCode(...units);
  }

  /** The code point that starts with `first`, whose other bytes start at `at`. */
  #sequence(bytes: Uint8Array, first: number, at: number): { code: number; end: number } {
    let more = 0;
    // The first continuation byte is narrower where overlong forms, surrogates or too large values would fit.
    let low = 0x80;
    let high = 0xbf;
    if (first >= 0xc2 && first <= 0xdf) more = 1;
    else if (first >= 0xe0 && first <= 0xef) more = 2;
    else if (first >= 0xf0 && first <= 0xf4) more = 3;
    if (first === 0xe0) low = 0xa0;
    else if (first === 0xed) high = 0x9f;
    else if (first === 0xf0) low = 0x90;
    else if (first === 0xf4) high = 0x8f;
    let code = first & (0x7f >> (more + 1));
    for (let left = more; left > 0; left -= 1) {
      const next = bytes[at];
      if (next === undefined || next < low || next > high) return this.#bad(at);
      code = (code << 6) | (next & 0x3f);
      at += 1;
      low = 0x80;
      high = 0xbf;
    }
    return more === 0 ? this.#bad(at) : { code, end: at };
  }

  #bad(end: number): { code: number; end: number } {
    if (this.fatal) throw new TypeError("the bytes are not UTF-8");
    return { code: REPLACEMENT, end };
  }
}
