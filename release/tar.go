package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"
)

// entry is a file of an archive: data, or what is in a file of this machine.
type entry struct {
	name string // with slashes, relative
	mode int64
	data []byte
	file string
}

// open returns the content of an entry, and its size.
func (e entry) open() (io.ReadCloser, int64, error) {
	if e.file == "" {
		return io.NopCloser(bytes.NewReader(e.data)), int64(len(e.data)), nil
	}
	file, err := os.Open(e.file)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
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
		content, size, err := e.open()
		if err != nil {
			return err
		}
		if err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: size, ModTime: at}); err == nil {
			_, err = io.Copy(w, content)
		}
		content.Close()
		if err != nil {
			return err
		}
	}
	return w.Close()
}

// readFolder returns the files of a folder in the order of their names, below a name. Links are followed.
func readFolder(folder, below string) ([]entry, error) {
	found, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, each := range found {
		file, name := filepath.Join(folder, each.Name()), path.Join(below, each.Name())
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		inside := []entry{{name: name, mode: 0o644, file: file}}
		if info.IsDir() {
			if inside, err = readFolder(file, name); err != nil {
				return nil, err
			}
		}
		entries = append(entries, inside...)
	}
	return entries, nil
}
