// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image/answer"
)

// maxReferrers bounds the referrers of one digest that are looked at.
const maxReferrers = 1000

// Manifest implements Registry.
func (r *registry) Manifest(ctx context.Context, reference string) ([]byte, string, error) {
	digest, err := fetch.ParseDigest(reference)
	pinned := err == nil
	if !pinned && !tagText.MatchString(reference) {
		return nil, "", fetch.Errorf(fetch.Refused, "%s is neither a tag nor a digest", fetch.Quote(reference))
	}
	if pinned {
		reference = digest.String()
	}
	data, contentType, err := r.read(ctx, reference)
	if err != nil {
		return nil, "", err
	}
	if pinned {
		if err := verified(data, digest, unknownSize); err != nil {
			return nil, "", err
		}
	}
	mediaType, err := typeOf(data, contentType)
	return data, mediaType, err
}

// typeOf returns the media type that a manifest states, or the server's word where it states none.
func typeOf(data []byte, contentType string) (string, error) {
	var stated struct {
		MediaType string `json:"mediaType"`
	}
	if err := checkDocument(data); err != nil {
		return "", fetch.Describe(err, "the manifest")
	}
	if err := json.Unmarshal(data, &stated); err != nil {
		return "", fetch.Errorf(fetch.InvalidContent, "the manifest is malformed: %w", err)
	}
	if stated.MediaType == "" {
		stated.MediaType = essence(contentType)
	}
	return stated.MediaType, nil
}

// Blob implements Registry.
func (r *registry) Blob(ctx context.Context, d v1.Descriptor, limit int64) ([]byte, error) {
	digest, err := fetch.ParseDigest(d.Digest.String())
	if err != nil {
		return nil, err
	}
	if d.Size < 0 || d.Size > limit {
		return nil, fetch.Errorf(fetch.LimitExceeded, "the blob %s has more than %d bytes", digest, limit)
	}
	body, err := r.blob(ctx, digest, d.Size)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(digest.Verify(body, d.Size))
	if closeErr := body.Close(); err == nil {
		err = fetch.NetworkError(closeErr)
	}
	if err != nil {
		return nil, fetch.Describe(err, "blob %s", digest)
	}
	return data, nil
}

// Referrers implements Registry. It asks the API of that name (OCI distribution specification 1.1) and, where the
// registry has none, the index under the tag that stands in for it.
func (r *registry) Referrers(ctx context.Context, digest fetch.Digest, artifactType string) ([]v1.Descriptor, error) {
	found, served, err := r.referrers(ctx, digest, artifactType)
	if err != nil || served {
		return found, fetch.Describe(err, "listing the referrers")
	}
	data, _, err := r.Manifest(ctx, referrersTag(digest))
	if fetch.ReasonOf(err) == fetch.NotFound {
		return nil, nil
	}
	list := referrers{artifactType: artifactType}
	if err == nil {
		err = list.add(data)
	}
	return list.found, fetch.Describe(err, "listing the referrers by tag")
}

// referrers asks the API; false when the registry has none.
func (r *registry) referrers(ctx context.Context, digest fetch.Digest, artifactType string) ([]v1.Descriptor, bool, error) {
	q := question{path: "referrers/" + digest.String(), accept: []string{string(types.OCIImageIndex)}}
	if artifactType != "" {
		q.query = url.Values{"artifactType": {artifactType}}.Encode()
	}
	list, strange := referrers{artifactType: artifactType}, false
	err := r.pages(ctx, q, func(contentType string, data []byte) error {
		if essence(contentType) != string(types.OCIImageIndex) {
			strange = true // some page of a server that knows nothing of referrers
			return nil
		}
		return list.add(data)
	})
	var status *answer.StatusError
	if strange || errors.As(err, &status) && slices.Contains(noReferrers, status.Code) {
		return nil, false, nil
	}
	return list.found, true, err
}

// noReferrers are the answers of registries without the API.
var noReferrers = []int{
	http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
	http.StatusNotImplemented,
}

// referrersTag is where registries without the API keep the list: OCI distribution specification, "Referrers tag schema".
func referrersTag(digest fetch.Digest) string {
	sum := digest.Encoded()
	return digest.Algorithm().String() + "-" + sum[:min(len(sum), 64)]
}

// referrers collects descriptors of one artifact type.
type referrers struct {
	artifactType string
	found        []v1.Descriptor
}

// add takes what an index lists. The registry may have filtered or not.
func (l *referrers) add(index []byte) error {
	var d document
	if err := checkDocument(index); err != nil {
		return fetch.Describe(err, "the list")
	}
	if err := json.Unmarshal(index, &d); err != nil {
		return fetch.Errorf(fetch.InvalidContent, "the list is not a valid index: %w", err)
	}
	for _, m := range d.Manifests {
		if l.artifactType == "" || m.ArtifactType == l.artifactType {
			l.found = append(l.found, m)
		}
	}
	if len(l.found) > maxReferrers {
		return fetch.Errorf(fetch.LimitExceeded, "there are more than %d", maxReferrers)
	}
	return nil
}
