// Package renewal decides when the token of a Secret is renewed. In go what the Secret holds, what its token should be made
// from, and the time; out comes whether a new token is due, and why, or when it will be. It makes no requests and writes nothing.
package renewal
