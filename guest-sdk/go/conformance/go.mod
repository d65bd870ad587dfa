module conformance

go 1.24

require keyrail v0.0.0

replace keyrail => ../
