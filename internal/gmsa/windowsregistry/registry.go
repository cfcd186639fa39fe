package windowsregistry

// Registry is the key of the Windows registry in which Docker looks for credential specs. Like the registry itself it finds
// values whatever the case of their names is. It is safe for concurrent use.
type Registry interface {
	// Write sets a value of type REG_SZ, and makes the key if it is missing.
	Write(name, contents string) error
	// Remove removes a value. A missing value is not an error.
	Remove(name string) error
	// Names are the names of all values, those of others included. A missing key has no values.
	Names() ([]string, error)
}
