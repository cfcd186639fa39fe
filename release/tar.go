package main

import (
	"archive/tar"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name string // with slashes, relative
	mode int64
	data []byte
}

// writeTar writes files, each after the folders that it is in, which all may read.
func writeTar(to io.Writer, at time.Time, entries []entry) error {
	w := tar.NewWriter(to)
	made := map[string]bool{".": true}
	var folder func(name string) error
	folder = func(name string) error {
		if made[name] {
			return nil
		}
		made[name] = true
		if err := folder(path.Dir(name)); err != nil {
			return err
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: at})
	}
	for _, e := range entries {
		if err := folder(path.Dir(e.name)); err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: at}); err != nil {
			return err
		}
		if _, err := w.Write(e.data); err != nil {
			return err
		}
	}
	return w.Close()
}

// readFolder returns the files of a folder, in the order of their names.
func readFolder(folder string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(folder, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		entries = append(entries, entry{name: filepath.ToSlash(relative), mode: 0o644, data: data})
		return nil
	})
	return entries, err
}
