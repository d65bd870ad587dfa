package main

import (
	"fmt"
	"strconv"
)

// Digest is a running 64-bit FNV-1a, not reset between ids, kept as 16 hex digits.
type Digest uint64

const (
	emptyDigest Digest = 0xcbf2_9ce4_8422_2325
	digestPrime Digest = 0x0000_0100_0000_01b3
)

func (d Digest) add(id string) Digest {
	for _, one := range []byte(id) {
		d = (d ^ Digest(one)) * digestPrime
	}
	return d
}

// MarshalText writes 16 hex digits.
func (d Digest) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(d)), nil }

// UnmarshalText reads hex digits.
func (d *Digest) UnmarshalText(text []byte) error {
	value, err := strconv.ParseUint(string(text), 16, 64)
	*d = Digest(value)
	return err
}
