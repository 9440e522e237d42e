// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"runtime"
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
		"Disagree":    {"readers that believe the server see an image", `{"mediaType":"` + index + `"}`, oci, false, false},
		"M29Index":    {"an answer of the type of an index with an image in it", `{"mediaType":"` + oci + `","layers":[]}`, index, false, false},
		"M29Body":     {"the same without a type in the document", `{"config":{"digest":"sha256:` + strings.Repeat("a", 64) + `"}}`, index, false, false},
		"M29Empty":    {"a list that is there and empty decides as well", `{"mediaType":"` + oci + `","manifests":[],"layers":[]}`, oci, false, false},
		"M29Null":     {"null is nothing", `{"mediaType":"` + oci + `","manifests":null,"layers":[]}`, oci, false, true},
		"M29Twice":    {"one reader takes the first, another the last", `{"mediaType":"` + oci + `","layers":[],"layers":[]}`, oci, false, false},
		"M29Case":     {"Go's decoder takes both for the same field", `{"mediaType":"` + oci + `","layers":[],"Layers":[]}`, oci, false, false},
		"M29LongS":    {"and so it does with the long s", `{"mediaType":"` + oci + `","layers":[],"layer\u017f":[]}`, oci, false, false},
		"M29Inner":    {"in a descriptor", `{"mediaType":"` + oci + `","layers":[{"size":1,"size":2}]}`, oci, false, false},
		"M29Notes":    {"keys of annotations are told apart by case", `{"mediaType":"` + oci + `","annotations":{"a":"1","A":"2"}}`, oci, false, true},
		"M29Notes2":   {"but no key is there twice", `{"mediaType":"` + oci + `","annotations":{"a":"1","a":"2"}}`, oci, false, false},
		"M29Follows":  {"something follows", `{"mediaType":"` + oci + `"}{}`, oci, false, false},
		"M29Most":     {"a thousand images are many enough", `{"mediaType":"` + index + `","manifests":[{}` + strings.Repeat(",{}", 999) + `]}`, index, true, true},
		"M29More":     {"and one more is refused", `{"mediaType":"` + index + `","manifests":[{}` + strings.Repeat(",{}", 1000) + `]}`, index, false, false},
		"M29Fields":   {"nor is an object of any size read", `{"mediaType":"` + oci + `","annotations":{` + fields(1001) + `}}`, oci, false, false},
		"M29Deep":     {"or of any depth", `{"mediaType":"` + oci + `","x":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`, oci, false, false},
		"Both":        {"read differently by different tools", `{"mediaType":"` + oci + `","layers":[{}],"manifests":[{}]}`, oci, false, false},
		"Confused":    {"an index that a server calls an image", `{"manifests":[{"digest":"sha256:` + strings.Repeat("a", 64) + `"}]}`, oci, false, false},
		"Schema1":     {"too old to be verified", `{"schemaVersion":1}`, string(types.DockerManifestSchema1Signed), false, false},
		"HTML":        {"a login page", `<html>`, "text/html", false, false},
		"Untyped":     {"its type is unknown", `{}`, "", false, false},
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

// fields are n fields of an object.
func fields(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, `"k%d":"",`, i)
	}
	return strings.TrimSuffix(all.String(), ",")
}

// TestM29WideIndex: an index of the largest size that is read, with as many entries as fit, is refused before they take
// memory: decoded, they would be 1.4 million descriptors of some 200 bytes.
func TestM29WideIndex(t *testing.T) {
	index := []byte(`{"mediaType":"` + string(types.OCIImageIndex) + `","manifests":[{}` + strings.Repeat(",{}", maxManifest/3-50) + `]}`)
	readers := map[string]func() error{
		"index":     func() error { _, err := parseDocument(index, string(types.OCIImageIndex)); return err },
		"referrers": func() error { return (&referrers{}).add(index) },
		"signature": func() error { _, err := typeOf(index, ""); return err },
	}
	for name, read := range readers {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := read()
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; fetch.ReasonOf(err) != fetch.LimitExceeded || taken > 16<<20 {
			t.Errorf("%s: %d bytes were allocated, %v", name, taken, err)
		}
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
