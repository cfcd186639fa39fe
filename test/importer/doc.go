// Package importer holds the tests of what other people's programs import and install. In goes the checkout, as a module proxy in a
// folder; nothing comes out but test failures. No tag is needed, and no module of the proxy stays in the module cache, only the name of its version.
package importer
