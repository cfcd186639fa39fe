// Package externalsignertest holds what tests of external signers share: a fake signer with keys in memory whose defects
// can be planted, and the conformance suite that every good signer passes. In goes a socket; out come test failures. It is
// never part of a program.
package externalsignertest
