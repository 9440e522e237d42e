// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/measure"
)

// noisy is by how much a figure may miss its target on a machine that does other things too.
const noisy = 6

// TestMain runs the tests or, in a process of its own, one way to pull an image.
func TestMain(m *testing.M) {
	measure.Main(m, func(args []string) error { return ways[args[0]](args[1], args[2]) })
}

// ways are how an image is pulled: ours, and what a caller of the library writes who copies the layers, or unpacks them
// without looking at what is in them.
var ways = map[string]func(ref, folder string) error{
	"ours": func(ref, folder string) error {
		o := options(ref)
		o.Limits.DownloadBytes, o.Limits.ExtractedBytes = 1<<30, 1<<30
		f, err := New(o)
		if err != nil {
			return err
		}
		resolved, err := f.Resolve(context.Background())
		if err != nil {
			return err
		}
		tree, err := fetch.NewTree(folder, o.Limits)
		if err != nil {
			return err
		}
		_, err = f.Fetch(context.Background(), resolved, tree)
		return errors.Join(err, tree.Close())
	},
	"copied": func(ref, folder string) error {
		return withLibrary(ref, func(img v1.Image) error {
			layers, err := img.Layers()
			if err != nil {
				return err
			}
			for i, layer := range layers {
				content, err := layer.Compressed()
				if err != nil {
					return err
				}
				if err := errors.Join(toFile(filepath.Join(folder, fmt.Sprint(i)), content), content.Close()); err != nil {
					return err
				}
			}
			return nil
		})
	},
	"unpacked": func(ref, folder string) error {
		return withLibrary(ref, func(img v1.Image) error {
			content := mutate.Extract(img)
			archive := tar.NewReader(content)
			for {
				header, err := archive.Next()
				if err == io.EOF {
					return content.Close()
				}
				if err != nil {
					return err
				}
				if err := toFile(filepath.Join(folder, filepath.Base(header.Name)), archive); err != nil {
					return err
				}
			}
		})
	},
}

func withLibrary(ref string, use func(v1.Image) error) error {
	parsed, err := name.ParseReference(ref, name.Insecure)
	if err != nil {
		return err
	}
	img, err := remote.Image(parsed)
	if err != nil {
		return err
	}
	return use(img)
}

func toFile(path string, content io.Reader) error {
	file, err := os.Create(path) //nolint:gosec // a path of the test
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// TestS2LargeImage pulls 56 MiB, or 512 MiB in the release suite, that cannot be compressed, beside the library.
func TestS2LargeImage(t *testing.T) {
	files := 7
	if os.Getenv("SATCHEL_FULL") != "" {
		files = 64
	}
	content, random := make([]byte, 8<<20), rand.NewChaCha8([32]byte{1})
	u := serve(t, distribution(t.TempDir(), nil))
	layers := make([]v1.Layer, 0, files)
	for i := range files {
		_, _ = random.Read(content)
		layers = append(layers, layer(t, fmt.Sprint("file", i), string(content)))
	}
	push(t, u.host+"/b:v1", imageOf(t, layers...))
	best := map[string]int{}
	for range 3 {
		for way := range ways {
			took, grown := measure.Elsewhere(t, way, u.host+"/b:v1", t.TempDir())
			if best[way] == 0 || took < best[way] {
				best[way] = took
			}
			t.Logf("%s: %d MiB in %d ms (%d MiB/s), memory grew by %d KiB", way, files*8, took, files*8*1000/max(took, 1), grown)
			if way == "ours" && grown > noisy*64<<10 {
				t.Error("that is far more than 64 MiB")
			}
		}
	}
	t.Logf("the best of three, in ms: %v", best)
	if best["ours"] > noisy*60_000 || best["ours"] > noisy*best["unpacked"]+1000 {
		t.Error("that is far more than 60 s, or than the library takes")
	}
}

// TestS2DefaultsRefuse512MiB: its size is in the manifest, so that no layer of it is asked for.
func TestS2DefaultsRefuse512MiB(t *testing.T) {
	var layers []v1.Descriptor
	for i := range 64 {
		sum := fetch.SHA256([]byte{byte(i)}).String() //nolint:gosec // few
		layers = append(layers, v1.Descriptor{MediaType: types.OCILayer, Size: 8 << 20, Digest: v1.Hash{Algorithm: "sha256", Hex: strings.TrimPrefix(sum, "sha256:")}})
	}
	manifest, err := json.Marshal(document{MediaType: types.OCIManifestSchema1, Layers: layers})
	if err != nil {
		t.Fatal(err)
	}
	u := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
		_, _ = w.Write(manifest)
	}))
	_, files, err := pull(t, options(u.host+"/b:v1"))
	if fetch.ReasonOf(err) != fetch.LimitExceeded || !strings.Contains(err.Error(), "the layers have more than 134217728 bytes") || len(files) > 0 {
		t.Errorf("%d files, %v", len(files), err)
	}
	if asked := u.seen(); slices.ContainsFunc(asked, func(request string) bool { return strings.Contains(request, "/blobs/") }) {
		t.Errorf("a layer was asked for: %q", asked)
	}
}
