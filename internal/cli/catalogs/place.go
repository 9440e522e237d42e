// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// place is a catalog of the command line.
type place struct {
	name     string
	path     string // of a folder or file, or the reference of an image; "" for a BundleCatalog
	priority int32
}

// isImage tells whether the path is the reference of an image: what exists on the disk wins.
func (p place) isImage() bool {
	if _, err := os.Stat(p.path); err == nil {
		return false
	}
	return kit.LooksLikeImage(p.path)
}

// priorityOption separates the path of a catalog from its priority.
const priorityOption = ",priority="

// parse reads the values of --catalog.
func parse(values []string) ([]place, error) {
	var places []place
	for _, value := range values {
		p, err := parsePlace(value)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(places, func(other place) bool { return other.name == p.name }) {
			return nil, fmt.Errorf("--catalog: the name %q is given twice", p.name)
		}
		places = append(places, p)
	}
	return places, nil
}

func parsePlace(value string) (place, error) {
	const want = "NAME of a BundleCatalog, NAME=PATH, NAME=IMAGE, or one of the latter with ,priority=N"
	name, path, found := strings.Cut(value, "=")
	if !found && len(validation.IsDNS1123Subdomain(name)) == 0 {
		return place{name: name}, nil
	}
	if !found || name == "" {
		return place{}, Usage("catalog", value, want)
	}
	p := place{name: name, path: path}
	if at := strings.LastIndex(path, priorityOption); at >= 0 {
		priority, err := strconv.ParseInt(path[at+len(priorityOption):], 10, 32)
		if err != nil {
			return place{}, Usage("catalog", value, want+", a number of 32 bits")
		}
		p.path, p.priority = path[:at], int32(priority)
	}
	if p.path == "" {
		return place{}, Usage("catalog", value, want)
	}
	return p, nil
}

// Usage is an error about a flag.
func Usage(flag, value, want string) error {
	return fmt.Errorf("--%s %q has to be %s", flag, value, want)
}
