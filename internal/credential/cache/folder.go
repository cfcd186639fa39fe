package cache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFileSize bounds what is read: more than a credential with its certificates and a state ever takes.
const maxFileSize = 4 << 20

var (
	// ErrUnsafe: other users can change the folder, or could have created it. It is refused and never repaired, because they may
	// have put files there.
	ErrUnsafe = errors.New("the folder is not safe")
	// ErrForeign: a file is not one that this package wrote: not regular, of another user, open to others, or too large.
	ErrForeign = errors.New("not a file of this cache")
)

// Folder is a folder of mode 0700 that belongs to the user of this process. It is opened once, and all operations are relative
// to the open folder: a folder that is put in its place later is not followed.
type Folder struct {
	path string
	root *os.Root
}

// Open opens a folder, and makes it with its parents if it does not exist. The error is ErrUnsafe if it is not this user's
// alone.
func Open(path string) (*Folder, error) {
	folder, err := OpenExisting(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return folder, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	return OpenExisting(path)
}

// OpenExisting is Open, but the error is fs.ErrNotExist if the folder does not exist.
func OpenExisting(path string) (*Folder, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open the cache %s: %w", path, err)
	}
	before, err := os.Lstat(absolute)
	if err != nil {
		return nil, fmt.Errorf("open the cache: %w", err)
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("%w: %s is %s: give the path of a folder itself", ErrUnsafe, absolute, kindOf(before.Mode()))
	}
	root, err := os.OpenRoot(absolute)
	if err != nil {
		return nil, fmt.Errorf("open the cache: %w", err)
	}
	if err := checkOpened(root, absolute, before); err != nil {
		_ = root.Close()
		return nil, err
	}
	return &Folder{path: absolute, root: root}, nil
}

// checkOpened checks the folder that was really opened, which is the one that was looked at before.
func checkOpened(root *os.Root, path string, before fs.FileInfo) error {
	opened, err := root.Stat(".")
	if err != nil {
		return fmt.Errorf("open the cache: %w", err)
	}
	if !os.SameFile(before, opened) {
		return fmt.Errorf("%w: %s was replaced while it was opened", ErrUnsafe, path)
	}
	if err := checkAccess(path, opened); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	return nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Path is the absolute path of the folder.
func (f *Folder) Path() string { return f.path }

// Read returns what is kept of a name. The error is fs.ErrNotExist if nothing is, and ErrForeign if the file there cannot be
// trusted.
func (f *Folder) Read(name Name) ([]byte, error) {
	file, err := f.open(string(name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.file(string(name)), err)
	}
	if len(data) > maxFileSize {
		return nil, fmt.Errorf("%w: %s is larger than %d bytes", ErrForeign, f.file(string(name)), maxFileSize)
	}
	return data, nil
}

// open opens a regular file of this user alone for reading.
func (f *Folder) open(base string) (*os.File, error) {
	// A pipe would have to be waited for, and a link be followed: look first.
	info, err := f.root.Lstat(base)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.file(base), cause(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is %s", ErrForeign, f.file(base), kindOf(info.Mode()))
	}
	file, err := f.root.Open(base)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.file(base), cause(err))
	}
	if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is %s", ErrForeign, f.file(base), kindOf(info.Mode()))
	}
	if err == nil {
		if access := checkAccess(f.file(base), info); access != nil {
			err = fmt.Errorf("%w: %w", ErrForeign, access)
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// Names lists the names with stored files, sorted. Unfinished files, of a killed process or one still at work, count: they may
// be secret, and must be found to be removed.
func (f *Folder) Names() ([]Name, error) {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list the cache %s: %w", f.path, err)
	}
	var names []Name
	for _, entry := range entries {
		if name, err := ParseName(strings.TrimSuffix(entry.Name(), Name("").temporary())); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (f *Folder) file(base string) string { return filepath.Join(f.path, base) }

// cause is an error of a file without the file's name, which os.Root gives without the folder.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode.IsDir():
		return "a folder"
	case mode.IsRegular():
		return "a regular file"
	default:
		return "a device, pipe or socket"
	}
}
