// Package image makes a container image of one static program, without a registry and without a builder.
//
// In go a name and the program's file; out comes a tar archive in the OCI image layout (image-spec v1.1, image-layout.md),
// which containerd imports. The same input gives the same bytes. It never runs the program, and takes none that needs files
// beside it.
package image
