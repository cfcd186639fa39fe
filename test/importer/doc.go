// Package importer holds the tests of what other people's programs import and install. In goes the checkout, as a module proxy in a
// folder; nothing comes out but test failures. No tag is needed, and nothing of the proxy stays in the module cache.
package importer
