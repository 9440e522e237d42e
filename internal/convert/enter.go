// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"io/fs"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Enter returns the folder that holds a bundle and the bundle's format, as Convert finds them; its error is an *Error.
func Enter(files fs.FS, o Options) (fs.FS, Format, error) {
	root, problem := enter(files, o.Path)
	if problem != nil {
		return nil, "", manifest.AsError([]Problem{*problem})
	}
	format, problem := formatOf(root, o)
	if problem != nil {
		return nil, "", manifest.AsError([]Problem{*problem})
	}
	return root, format, nil
}
