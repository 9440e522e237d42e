// SPDX-License-Identifier: Apache-2.0

package image

import (
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestParseDocument(t *testing.T) {
	oci, index := string(types.OCIManifestSchema1), string(types.OCIImageIndex)
	cases := map[string]struct {
		reason, body, contentType string
		index, ok                 bool
	}{
		"Stated":      {"the document's word", `{"mediaType":"` + oci + `"}`, "text/plain", false, true},
		"Header":      {"the server's word where there is none", `{"layers":[]}`, oci + "; charset=utf-8", false, true},
		"Index":       {"an index", `{"mediaType":"` + index + `"}`, "", true, true},
		"Disagree":    {"the digest covers the document only", `{"mediaType":"` + index + `"}`, oci, true, true},
		"Both":        {"read differently by different tools", `{"mediaType":"` + oci + `","layers":[{}],"manifests":[{}]}`, oci, false, false},
		"Confused":    {"an index that a server calls an image", `{"manifests":[{"digest":"sha256:` + strings.Repeat("a", 64) + `"}]}`, oci, false, false},
		"Schema1":     {"too old to be verified", `{"schemaVersion":1}`, string(types.DockerManifestSchema1Signed), false, false},
		"HTML":        {"a login page", `<html>`, "text/html", false, false},
		"Untyped":     {"nobody says what it is", `{}`, "", false, false},
		"BadDigest":   {"no digest", `{"mediaType":"` + oci + `","layers":[{"digest":"x"}]}`, "", false, false},
		"WrongLayers": {"no list", `{"mediaType":"` + oci + `","layers":7}`, "", false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := parseDocument([]byte(tc.body), tc.contentType)
			if (err == nil) != tc.ok || err == nil && d.isIndex() != tc.index {
				t.Errorf("%s: %+v, %v", tc.reason, d, err)
			}
		})
	}
}

func TestIndex(t *testing.T) {
	child := func(what, platform string) mutate.IndexAddendum {
		add := mutate.IndexAddendum{Add: imageOf(t, layer(t, "a", what))}
		if platform != "" {
			parsed, err := v1.ParsePlatform(platform)
			if err != nil {
				t.Fatal(err)
			}
			add.Platform = parsed
		}
		return add
	}
	attestation := child("attestation", "unknown/unknown")
	attestation.Annotations = map[string]string{"vnd.docker.reference.type": "attestation-manifest"}
	cases := map[string]struct {
		reason   string
		children []mutate.IndexAddendum
		platform string
		want     string
		text     string
	}{
		"Default":      {"linux/amd64", []mutate.IndexAddendum{child("arm", "linux/arm64"), child("amd", "linux/amd64")}, "", "amd", ""},
		"Stated":       {"as asked", []mutate.IndexAddendum{child("arm", "linux/arm64/v8"), child("amd", "linux/amd64")}, "linux/arm64", "arm", ""},
		"Variant":      {"as asked", []mutate.IndexAddendum{child("6", "linux/arm/v6"), child("7", "linux/arm/v7")}, "linux/arm/v7", "7", ""},
		"OnlyOne":      {"a bundle built on another machine", []mutate.IndexAddendum{attestation, child("arm", "linux/arm64")}, "", "arm", ""},
		"NoPlatform":   {"the only one, and it does not say", []mutate.IndexAddendum{child("x", "")}, "linux/s390x", "x", ""},
		"StatedOther":  {"asked for another one", []mutate.IndexAddendum{child("arm", "linux/arm64")}, "linux/amd64", "", "no image for linux/amd64: found linux/arm64"},
		"Several":      {"none of them fits", []mutate.IndexAddendum{child("arm", "linux/arm64"), child("z", "linux/s390x"), child("x", "")}, "", "", "found an image without a platform, linux/arm64, linux/s390x"},
		"Attestations": {"nothing but statements", []mutate.IndexAddendum{attestation}, "", "", "found no image at all"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := small(t)
			index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), tc.children...)
			push(t, u.host+"/b:v1", index)
			o := options(u.host + "/b:v1")
			o.Platform = tc.platform
			resolved, files, err := pull(t, o)
			if tc.want == "" {
				if fetch.ReasonOf(err) != fetch.InvalidContent || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if err != nil || files["a"] != tc.want || resolved.Digest != digestOf(t, index) {
				t.Errorf("%s: %v %v %v", tc.reason, resolved, files, err)
			}
		})
	}
}

func TestIndexInIndex(t *testing.T) {
	u := small(t)
	inner := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: imageOf(t, layer(t, "a", "1"))})
	outer := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: inner, Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}},
	})
	push(t, u.host+"/b:v1", inner)
	raw, err := outer.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	push(t, u.host+"/b:v2", asItStands(raw))
	_, _, err = pull(t, options(u.host+"/b:v2"))
	if fetch.ReasonOf(err) != fetch.InvalidContent || !strings.Contains(err.Error(), "another index") {
		t.Errorf("got %v", err)
	}
}

// asItStands is an index as it stands.
type asItStands []byte

func (s asItStands) RawManifest() ([]byte, error) { return s, nil }

func (s asItStands) MediaType() (types.MediaType, error) { return types.OCIImageIndex, nil }

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"platform":{"os":"linux"}}]}`))
	f.Add([]byte(`{"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[{"size":1,"urls":["x"]}]}`))
	f.Add([]byte(`{"manifests":[{"digest":"sha256:` + strings.Repeat("a", 64) + `","artifactType":"x","size":-1}],"layers":[{}]}`))
	f.Add([]byte(`{"mediaType":"application/vnd.docker.distribution.manifest.v2+json","layers":[{"mediaType":"a.tar","size":9223372036854775807}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list := referrers{artifactType: "x"}
		if err := list.add(data); err == nil && len(list.found) > maxReferrers {
			t.Errorf("%d referrers", len(list.found))
		}
		d, err := parseDocument(data, "")
		if err != nil {
			return
		}
		if _, err := (platform{}).choose(d.Manifests); err != nil && len(err.Error()) > 16<<10 {
			t.Errorf("a message of %d bytes", len(err.Error()))
		}
		_ = checkLayers(d.Layers, fetch.DefaultLimits())
	})
}
