// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/artifact/volume"
)

// ListOwners lists the owners with a folder in a storage folder, sorted. Folders that no owner can have are left out.
func ListOwners(root *os.Root) ([]Owner, error) {
	folders := []string{""}
	for range 3 {
		var below []string
		for _, folder := range folders {
			names, err := subfolders(root, folder)
			if err != nil {
				return nil, volume.WrapError("listing the owners of artifacts", err)
			}
			below = append(below, names...)
		}
		folders = below
	}
	var owners []Owner
	for _, folder := range folders {
		parts := strings.Split(folder, "/")
		o := Owner{Kind: parts[0], Namespace: parts[1], Name: parts[2]}
		if o.Validate() == nil {
			owners = append(owners, o)
		}
	}
	return owners, nil
}

// subfolders lists the folders in a folder with their paths; links are none, nor is what no owner can have made
// (lost+found). A folder that is gone has none.
func subfolders(root *os.Root, folder string) ([]string, error) {
	entries, err := volume.ListFolder(root, path.Clean("./"+folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && len(validation.IsDNS1123Subdomain(entry.Name())) == 0 {
			names = append(names, path.Join(folder, entry.Name()))
		}
	}
	return names, nil
}
