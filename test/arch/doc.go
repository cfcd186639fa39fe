// Package arch holds the tests that keep the tree a house one would live in: who may import whom, and what every package
// must say of itself. In goes the module's own source; nothing comes out but test failures.
package arch
