// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/index"
)

// Prefix is the beginning of the paths of all catalogs.
const Prefix = "/catalogs/"

// Handler serves catalogs as catalogd of OLM v1 does. It does not authorize.
type Handler struct {
	Store *Store
	// Shared is the namespace with catalogs for all namespaces; "" for none. Its catalogs are served without the namespace in
	// the path, too.
	Shared string
}

// Endpoints below api/v1/ of a catalog.
const (
	endpointAll      = "all"
	endpointMetas    = "metas"
	endpointPackages = "packages"
	// endpointLean has what resolution reads of one package: see serveLean.
	endpointLean = "lean"
	// endpointProviders has the packages that provide a kind: see serveProviders.
	endpointProviders = "providers"
)

// endpoints are all of them.
var endpoints = []string{endpointAll, endpointMetas, endpointPackages, endpointLean, endpointProviders}

// Route implements server.Catalogs: it reads a path such as /catalogs/NAMESPACE/NAME/api/v1/all.
func (h *Handler) Route(path string) (namespace string, serve func(http.ResponseWriter, *http.Request) error, ok bool) {
	parts := strings.Split(strings.TrimPrefix(path, Prefix), "/")
	if len(parts) == 4 && h.Shared != "" {
		parts = append([]string{h.Shared}, parts...)
	}
	if len(parts) != 5 || parts[2] != "api" || parts[3] != "v1" {
		return "", nil, false
	}
	of, endpoint := types.NamespacedName{Namespace: parts[0], Name: parts[1]}, parts[4]
	if !slices.Contains(endpoints, endpoint) || len(validation.IsDNS1123Label(of.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(of.Name)) > 0 {
		return "", nil, false
	}
	if namespace = of.Namespace; namespace == h.Shared {
		namespace = "" // every namespace may read it
	}
	return namespace, func(w http.ResponseWriter, r *http.Request) error { return h.serve(w, r, of, endpoint) }, true
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, of types.NamespacedName, endpoint string) error {
	query, valid := parseQuery(r.URL.RawQuery, endpoint)
	kind, validKind := parseKind(r.URL.RawQuery)
	if endpoint == endpointProviders {
		valid = validKind
	}
	if !valid {
		http.Error(w, http.StatusText(http.StatusBadRequest), http.StatusBadRequest)
		return nil
	}
	contents, err := h.Store.Contents(of)
	if err != nil {
		return err
	}
	if endpoint == endpointProviders {
		return serveProviders(w, r, contents, kind)
	}
	if endpoint == endpointLean {
		return serveLean(w, r, contents, query.Package)
	}
	name := index.AllFile
	if endpoint == endpointPackages {
		name = index.ListFile
	}
	file, err := contents.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read from
	var body io.ReadSeeker = file
	if query != (index.Query{}) {
		body = newSections(file, contents.Index.Select(query))
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Etag", `"`+contents.Record.Contents+`"`)
	http.ServeContent(w, r, "", contents.Record.StoredTime, body)
	return nil
}

// serveLean answers with the blobs of one package that resolution depends on, one a line. The validator is the digest of these
// bytes, so that a client asks for a package again only when it changed. The answer is 204 if the catalog does not have the
// package, and 422 with the problem if it is left out.
func serveLean(w http.ResponseWriter, r *http.Request, contents *Contents, name string) error {
	entry, found := contents.Index.Find(name)
	switch {
	case !found:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case entry.Problem != "":
		http.Error(w, entry.Problem, http.StatusUnprocessableEntity)
		return nil
	}
	file, err := contents.Open(index.LeanFile)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read from
	var parts []index.Extent
	for _, part := range entry.Lean {
		parts = append(parts, index.Extent{Offset: part.Offset, Length: part.Length})
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Etag", `"`+entry.Digest+`"`)
	http.ServeContent(w, r, "", time.Time{}, newSections(file, parts))
	return nil
}

// serveProviders answers with the packages that have a bundle which provides a kind, one a line, sorted. Packages that are left
// out are not among them.
func serveProviders(w http.ResponseWriter, r *http.Request, contents *Contents, kind catalog.Kind) error {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	for _, name := range contents.Index.Providers(kind.Group, kind.Version, kind.Kind) {
		if err := encoder.Encode(map[string]string{"name": name}); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Etag", `"`+contents.Record.Contents+`"`)
	http.ServeContent(w, r, "", contents.Record.StoredTime, bytes.NewReader(body.Bytes()))
	return nil
}

// parseKind reads the parameters of a request for the providers of a kind. The group may be empty.
func parseKind(raw string) (catalog.Kind, bool) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return catalog.Kind{}, false
	}
	for name := range values {
		if !slices.Contains([]string{"group", "version", "kind"}, name) {
			return catalog.Kind{}, false
		}
	}
	kind := catalog.Kind{Group: values.Get("group"), Version: values.Get("version"), Kind: values.Get("kind")}
	return kind, kind.Version != "" && kind.Kind != ""
}

// parseQuery reads the parameters of a request. As in catalogd, an empty one counts for nothing, and the first of several is
// taken.
func parseQuery(raw, endpoint string) (index.Query, bool) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return index.Query{}, false
	}
	if endpoint == endpointLean {
		return index.Query{Package: values.Get("package")}, len(values) == 1 && values.Get("package") != ""
	}
	for name := range values {
		if endpoint != endpointMetas || !slices.Contains([]string{"schema", "package", "name"}, name) {
			return index.Query{}, false
		}
	}
	return index.Query{Schema: values.Get("schema"), Package: values.Get("package"), Name: values.Get("name")}, true
}

// sections are parts of a file as one body.
type sections struct {
	file  io.ReaderAt
	parts []index.Extent
	ends  []int64 // of the parts, in the body
	at    int64
}

func newSections(file io.ReaderAt, parts []index.Extent) *sections {
	s := &sections{file: file, parts: parts}
	end := int64(0)
	for _, part := range parts {
		end += part.Length
		s.ends = append(s.ends, end)
	}
	return s
}

// Read implements io.Reader.
func (s *sections) Read(p []byte) (int, error) {
	i, found := slices.BinarySearchFunc(s.ends, s.at, cmp.Compare[int64])
	if found {
		i++ // the end of a part is the beginning of the next one
	}
	if i >= len(s.parts) {
		return 0, io.EOF
	}
	left := s.ends[i] - s.at
	n, err := s.file.ReadAt(p[:min(int64(len(p)), left)], s.parts[i].Offset+s.parts[i].Length-left)
	s.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// Seek implements io.Seeker.
func (s *sections) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.at
	case io.SeekEnd:
		if len(s.ends) > 0 {
			offset += s.ends[len(s.ends)-1]
		}
	}
	if offset < 0 {
		return 0, errors.New("the position is negative")
	}
	s.at = offset
	return offset, nil
}
