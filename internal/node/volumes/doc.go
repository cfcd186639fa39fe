// Package volumes is the volumes of a node's pods that hold tokens: file systems in memory, and the files in them. In go the path that
// the kubelet wants a volume at, and files; out comes a volume that a container reads. All files of a volume change at once. It never
// writes a file to a path where no file system in memory is mounted, knows no tokens, and makes no requests.
package volumes
