package command

import (
	"fmt"
	"io"
	"os"
)

// MaxFile bounds what is read of a file.
const MaxFile = 8 << 20

// ReadFile reads the file of a name, or for - the standard input that is given.
func ReadFile(in io.Reader, name string) ([]byte, error) {
	from := in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, MaxFile+1))
	if err == nil && len(text) > MaxFile {
		err = fmt.Errorf("%s is longer than %d bytes", name, MaxFile)
	}
	return text, err
}
