// Package secretwatch keeps in memory the labelled Secrets of the namespaces whose Secrets may be read. In go RoleBindings of one
// name, which define those namespaces, out comes a cache of controller-runtime whose namespaces come and go while it runs. It needs no
// right to the Secrets of any other namespace, and changes nothing.
package secretwatch
