// Package allocations holds the hot paths to the allocations that they have: a token that is prepared and signed, a document
// that is answered, a ring that is planned. In goes a baseline that is checked in, out come the names of the operations that
// allocate more. It measures no time: allocations are the same on every machine.
package allocations
