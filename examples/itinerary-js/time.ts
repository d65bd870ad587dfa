/** Just enough of RFC 3339 for these events: UTC, whole seconds. */

import { Reject } from "@keyrail/guest";

const FORM = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/;

/** Seconds since 1970 of `2013-01-01T10:17:00Z`. */
export function unixSeconds(at: string): number {
  const milliseconds = FORM.test(at) ? Date.parse(at) : Number.NaN;
  if (Number.isNaN(milliseconds)) throw new Reject(`not a UTC time such as 2013-01-01T10:17:00Z: ${at}`);
  return milliseconds / 1000;
}
