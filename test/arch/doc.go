// Package arch holds the tests of the tree's structure: which package may import which, and what every package
// must document of itself. In goes the module's own source; nothing comes out but test failures.
package arch
