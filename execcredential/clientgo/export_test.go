package clientgo

// AllowedCommand is for an entry with fields that no version of client-go has yet.
var AllowedCommand = allowedCommand
