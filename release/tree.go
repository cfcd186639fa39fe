package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing/fstest"
	"time"
)

// tree holds the files of an archive by name, in memory. All have one time, so that the same files give the same archive.
type tree struct {
	fstest.MapFS
	at time.Time
}

func newTree(at time.Time) tree { return tree{fstest.MapFS{}, at} }

// add adds a file, and the folders that it is in, which all users may read.
func (t tree) add(name string, mode fs.FileMode, data []byte) {
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		t.MapFS[folder] = &fstest.MapFile{Mode: fs.ModeDir | 0o755, ModTime: t.at}
	}
	t.MapFS[name] = &fstest.MapFile{Data: data, Mode: mode, ModTime: t.at}
}

// addFolder adds the files of a folder of this machine below a name. Links are followed.
func (t tree) addFolder(folder, below string) error {
	found, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, each := range found {
		file, name := filepath.Join(folder, each.Name()), path.Join(below, each.Name())
		if info, err := os.Stat(file); err != nil {
			return err
		} else if info.IsDir() {
			if err := t.addFolder(file, name); err != nil {
				return err
			}
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		t.add(name, 0o644, data)
	}
	return nil
}

func (t tree) tar(to io.Writer) error {
	w := tar.NewWriter(to)
	return errors.Join(w.AddFS(t.MapFS), w.Close())
}

func (t tree) tarGzip() ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	err := errors.Join(t.tar(compressed), compressed.Close())
	return out.Bytes(), err
}

func (t tree) zip() ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	err := errors.Join(w.AddFS(t.MapFS), w.Close())
	return out.Bytes(), err
}
