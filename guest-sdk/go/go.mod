module keyrail

go 1.24
