package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinks is how many symbolic links Linux follows in one path.
const maxLinks = 40

// trail returns every place whose change can change what path leads to: each component and each link on the way, as
// paths without links in their folders. It ends at the first that does not exist.
func trail(path string) []string {
	var places []string
	rest := components(path)
	folder, links := string(filepath.Separator), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			folder = filepath.Dir(folder)
			continue
		}
		place := filepath.Join(folder, name)
		places = append(places, place)
		info, err := os.Lstat(place)
		if err != nil {
			return places
		}
		if info.Mode()&os.ModeSymlink == 0 {
			folder = place
			continue
		}
		target, err := os.Readlink(place)
		if links++; err != nil || links > maxLinks {
			return places
		}
		if filepath.IsAbs(target) {
			folder = string(filepath.Separator)
		}
		rest = append(components(target), rest...)
	}
	return places
}

func components(path string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(path), "/"), func(name string) bool { return name == "" || name == "." })
}
