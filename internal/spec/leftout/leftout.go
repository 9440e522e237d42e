// SPDX-License-Identifier: Apache-2.0

package leftout

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch/links"
)

// Bundle is what is known about the files of a revision.
type Bundle struct {
	Format convert.Format
	// Root is the folder of the bundle in the artifact.
	Root string
	// LeftOut names the links that the artifact lacks: see fetch.Tree.LeftOut.
	LeftOut []string
}

// Applied is what is known about the applied revision.
type Applied struct {
	// Known is false where it is not known which files its objects came from, and what was left out of it.
	Known bool
	// Origins are the files that its objects came from; "" for an object of no single file.
	Origins map[inventory.ID]string
	LeftOut []string
	// Held are objects of earlier revisions that it held, each with the names of the links because of which it did.
	Held map[inventory.ID][]string
}

// Hold returns the objects of an inventory that are to stay if they left the bundle, because links may be the reason, each with the names
// of these links. The first line that holds decides about an object:
//
//	an earlier revision held it     while one of the same names is still a link
//	nothing is known                by all links that the format may have read
//	it came from one file           by the link that took the place of the file, or of a folder above it
//	                                and, of a chart, by a new link to what several templates may read, such as values
//	else                            by all new links that the format may have read
//
// Objects with the same names share one slice: see reasons.
func Hold(is Bundle, was Applied, listed inventory.Inventory) map[inventory.ID][]string {
	read := slices.DeleteFunc(slices.Clone(is.LeftOut), func(name string) bool { return !is.mayRead(name) })
	if len(read) == 0 {
		return nil
	}
	because := newReasons(is, read, was)
	held := map[inventory.ID][]string{}
	for _, entry := range listed.Entries {
		if names := because.of(entry.ID); len(names) > 0 {
			held[entry.ID] = names
		}
	}
	return held
}

// mayRead tells whether the format may read a file or folder without failing if it is missing. A kustomization names all of its files.
func (b Bundle) mayRead(name string) bool {
	if b.Format == convert.Kustomize {
		return false
	}
	return covers(b.Root, name) || covers(name, b.Root)
}

// isShared tells whether several objects of a chart may depend on a file: values, subcharts, and files that templates read. A template
// or CRD of the chart itself makes only its own objects; without templates that it shares with others, these fail.
func (b Bundle) isShared(name string) bool {
	if b.Format != convert.Helm || len(links.Meaningful([]string{name})) == 0 {
		return false
	}
	return !covers(path.Join(b.Root, "templates"), name) && !covers(path.Join(b.Root, "crds"), name)
}

// covers tells whether a path is a folder, or is in it.
func covers(folder, name string) bool {
	if folder == links.Everything {
		return true
	}
	inside, below := strings.CutPrefix(name, folder)
	return below && (inside == "" || inside[0] == '/')
}

// OriginsOf are the files of objects as they are applied, one each. An object that was converted without a namespace, since its kind was
// not known, is found as well. It is empty where no origin is known.
func OriginsOf(objects []*unstructured.Unstructured, converted map[inventory.ID]string) []string {
	if converted == nil {
		return nil
	}
	origins := make([]string, 0, len(objects))
	for _, object := range objects {
		id := inventory.IDOf(object)
		origin, found := converted[id]
		if !found {
			id.Namespace = ""
			origin = converted[id]
		}
		origins = append(origins, origin)
	}
	return origins
}
