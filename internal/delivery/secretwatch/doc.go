// Package secretwatch keeps the labelled Secrets of those namespaces in memory whose Secrets may be read. In go RoleBindings of one
// name, which say where that is, out comes a cache of controller-runtime whose namespaces come and go while it runs. It needs no
// right to the Secrets of any other namespace, and changes nothing.
package secretwatch
