// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

const bundles = "testdata/bundles/"

func TestRenderFolder(t *testing.T) {
	got := satchel(t, "render", bundles+"plain", "--install-namespace", "demo")
	golden(t, "render/plain", got.String())
	if again := satchel(t, "render", bundles+"plain", "--install-namespace", "demo"); again != got {
		t.Errorf("the second time differs: -first +second:\n%s", cmp.Diff(got.String(), again.String()))
	}
}

// kindsOf lists the kinds and names of a YAML stream.
func kindsOf(t *testing.T, stream string) []string {
	t.Helper()
	var found []string
	for document := range strings.SplitSeq(stream, "---\n") {
		if document == "" {
			continue
		}
		var o struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		found = append(found, o.Kind+" "+o.Metadata.Namespace)
	}
	return found
}

func TestRenderRegistryV1(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"all namespaces": {reason: "the default where the bundle supports it",
			want: []string{"ServiceAccount demo", "ClusterRole ", "ClusterRoleBinding ", "Deployment demo"}},
		"one namespace": {reason: "rights only where the operator works", args: []string{"--watch-namespace", "shop"},
			want: []string{"ServiceAccount demo", "Role shop", "RoleBinding shop", "Role demo", "RoleBinding demo", "Deployment demo"}},
		"named format": {reason: "naming the format changes nothing", args: []string{"--format", "registry+v1", "--path", "./"},
			want: []string{"ServiceAccount demo", "ClusterRole ", "ClusterRoleBinding ", "Deployment demo"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := satchel(t, append([]string{"render", bundles + "registry", "--install-namespace", "demo"}, tc.args...)...)
			if got.Code != kit.ExitOK {
				t.Fatalf("%s", got)
			}
			if diff := cmp.Diff(tc.want, kindsOf(t, got.Out)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRenderRefuses(t *testing.T) {
	t.Chdir(bundles)
	archive := filepath.Join(t.TempDir(), "b.TGZ")
	if err := os.WriteFile(archive, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   []string // all of them are said
	}{
		"broken bundle": {reason: "all problems at once", args: []string{"./broken", "--install-namespace", "demo"},
			want: []string{"the bundle is refused, 3 problems:", "a.yaml (document 1)", "a.yaml (document 2)", "b.yaml"}},
		"the parent": {reason: "a folder above the bundle is a common mistake", args: []string{".", "--install-namespace", "demo"},
			want: []string{"Hint: there are registry+v1 bundles in it: faulty, gadget, registry; if one of them was meant, name it: add --path faulty\nError: the bundle is refused,"}},
		"the grandparent": {reason: "as catalogs keep them", args: []string{"..", "--install-namespace", "demo"}, want: []string{"Hint: there are registry+v1 bundles in it: bundles/faulty, bundles/gadget, bundles/registry;"}},
		"metadata alone": {reason: "the bundle was meant", args: []string{"gadget/metadata", "--install-namespace", "demo"},
			want: []string{"Hint: this is only a part of what looks like a registry+v1 bundle; if that was meant, give the folder gadget\nError: "}},
		"metadata by --path": {reason: "the bundle was meant", args: []string{"gadget", "--path", "metadata", "--install-namespace", "demo"},
			want: []string{"Hint: this is only a part of what looks like a registry+v1 bundle; if that was meant, leave --path out\nError: "}},
		"no such --path": {reason: "the flag that is wrong", args: []string{"gadget", "--path", "x", "--install-namespace", "demo"},
			want: []string{"Hint: what is there looks like a registry+v1 bundle itself; if that was meant, leave --path out\n", `the bundle has no folder "x"; correct --path`}},
		"an archive":    {reason: "it is not unpacked here", args: []string{archive, "--install-namespace", "demo"}, want: []string{"b.TGZ is an archive: unpack it, and give the folder"}},
		"an empty name": {reason: "a variable of a script was empty", args: []string{"", "--install-namespace", "demo"}, want: []string{"the name of the folder or image is empty"}},
		"always all": {reason: "flags are named, not fields", args: []string{"gadget", "--install-namespace", "demo", "--watch-namespace", "a"},
			want: []string{"always watches all namespaces (supported install modes: AllNamespaces); leave --watch-namespace out [N2]"}},
		"two namespaces": {reason: "the bundle does not support that",
			args: []string{"registry", "--install-namespace", "demo", "--watch-namespace", "a", "--watch-namespace", "b"},
			want: []string{"the bundle is refused, 1 problem:", "ClusterServiceVersion greeter.v0.1.0"}},
		"no such path":     {reason: "./ is never an image", args: []string{"./none", "--install-namespace", "demo"}, want: []string{"there is no folder ./none"}},
		"a file":           {reason: "a bundle is a folder", args: []string{"plain/app.yaml", "--install-namespace", "demo"}, want: []string{"plain/app.yaml is a file"}},
		"nonsense":         {reason: "neither path nor image", args: []string{"What?", "--install-namespace", "demo"}, want: []string{`"What?" is neither a folder that exists nor an image reference`}},
		"no namespace":     {reason: "nothing is guessed", args: []string{"plain"}, want: []string{"render needs --install-namespace"}},
		"wrong namespace":  {reason: "no namespace has such a name", args: []string{"plain", "--install-namespace", "A b"}, want: []string{`"A b"`, "correct --install-namespace"}},
		"kubectl's flag":   {reason: "-n is about a cluster", args: []string{"plain", "-n", "demo", "--install-namespace", "demo"}, want: []string{"--namespace has no effect"}},
		"nothing":          {reason: "what to render?", want: []string{"render needs one folder or image, or -f with a BundleDeployment, got none; see satchel render --help"}},
		"two bundles":      {reason: "one at a time", args: []string{"a", "b"}, want: []string{"got 2: a b"}},
		"unknown format":   {reason: "the words are listed", args: []string{"plain", "--format", "jsonnet"}, want: []string{`"jsonnet" is not one of: plain+v0, registry+v1, helm, kustomize`}},
		"unknown provider": {reason: "the words are listed", args: []string{"plain", "--certificate-provider", "x"}, want: []string{"cert-manager, service-ca"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := satchel(t, append([]string{"render"}, tc.args...)...)
			if got.Code != kit.ExitError || got.Out != "" {
				t.Errorf("%s: want exit 2 and nothing on standard output, got %s", tc.reason, got)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Err, want) {
					t.Errorf("%s: %q is missing in\n%s", tc.reason, want, got.Err)
				}
			}
		})
	}
}

// TestRenderSaysHowANameWasRead: a folder takes precedence over an image of the same name.
func TestRenderSaysHowANameWasRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "example.org", "plain:v1")
	if err := os.CopyFS(dir, os.DirFS(bundles+"plain")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(filepath.Dir(dir)))
	for given, want := range map[string]string{
		"example.org/plain:v1":   "Reading the folder example.org/plain:v1 (not the image example.org/plain:v1).\n",
		"./example.org/plain:v1": "Reading the folder ./example.org/plain:v1.\n",
	} {
		if got := satchel(t, "render", given, "--install-namespace", "demo"); got.Code != kit.ExitOK || !strings.HasPrefix(got.Err, want) {
			t.Errorf("want %q, got %s", want, got)
		}
	}
	t.Chdir(dir)
	if got := satchel(t, "inspect", "."); !strings.HasPrefix(got.Err, "Reading the folder /") || !strings.Contains(got.Err, "/plain:v1.\n") {
		t.Errorf("a dot says nothing: %s", got.Err)
	}
}

// TestM2RenderLeavesLinksOut: files that the controllers skip are not previewed, and no file outside is read.
func TestM2RenderLeavesLinksOut(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret.yaml")
	manifest := func(file, name string) {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	manifest(filepath.Join(dir, "real.yaml"), "real")
	manifest(outside, "outside")
	for link, to := range map[string]string{"link.yaml": "real.yaml", "out.yaml": outside, "folder": filepath.Dir(outside)} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	got := satchel(t, "render", dir, "--install-namespace", "demo")
	if got.Code != kit.ExitOK || strings.Count(got.Out, "name: ") != 1 || !strings.Contains(got.Out, "name: real") {
		t.Errorf("want the real file only, got %s", got)
	}
	if got := satchel(t, "render", dir, "--path", "folder", "--install-namespace", "demo"); got.Code != kit.ExitError {
		t.Errorf("want a link as --path refused, got %s", got)
	}
	if !strings.Contains(got.Err, "link.yaml is a symbolic link and left out") {
		t.Errorf("nothing is said about the links:\n%s", got.Err)
	}
}

// bundleImage makes an image with one layer a folder of the bundle.
func bundleImage(t *testing.T, dir string) v1.Image {
	t.Helper()
	img := empty.Image
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		add := func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				return err
			}
			if err := w.WriteHeader(&tar.Header{Name: file, Size: int64(len(content)), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
				return err
			}
			_, err = w.Write(content)
			return err
		}
		if err := fs.WalkDir(os.DirFS(dir), entry.Name(), add); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			t.Fatal(err)
		}
	}
	return img
}

// serveImage serves the registry+v1 fixture as greeter:v1 and returns the reference and digest.
func serveImage(t *testing.T) (ref, digest string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	ref = strings.TrimPrefix(server.URL, "http://") + "/greeter:v1"
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	img := bundleImage(t, bundles+"registry")
	if err := remote.Write(parsed, img); err != nil {
		t.Fatal(err)
	}
	hash, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return ref, hash.String()
}

func TestRenderImage(t *testing.T) {
	ref, digest := serveImage(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	folder := satchel(t, "render", bundles+"registry", "--install-namespace", "demo")
	for name, tc := range map[string]struct{ reason, ref, says string }{
		"tag":    {"a tag is resolved, and to what is said", ref, "Reading the image " + ref + ", which is " + digest + ".\n"},
		"digest": {"a digest is what it is", strings.TrimSuffix(ref, ":v1") + "@" + digest, "Reading the image " + strings.TrimSuffix(ref, ":v1") + "@" + digest + ".\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := satchel(t, "render", tc.ref, "--install-namespace", "demo", "--insecure")
			if got.Code != kit.ExitOK || got.Out != folder.Out || !strings.HasPrefix(got.Err, tc.says) {
				t.Errorf("%s: got %s\nwant\n%s", tc.reason, got, folder.Out)
			}
		})
	}
	for name, tc := range map[string]struct {
		reason, want string
		args         []string
	}{
		"no such tag":             {"the registry's word", "not found", []string{strings.TrimSuffix(ref, "v1") + "v2", "--insecure"}},
		"no folder":               {"it was neither of both", "there is no folder x, and the image ", []string{"x", "--insecure", "--platform", "x"}},
		"no server":               {"a registry is no cluster", "the image 127.0.0.1:1/x:v1 cannot be fetched: connection refused: check the host and the port, and that the server runs\n", []string{"127.0.0.1:1/x:v1", "--insecure"}},
		"no such platform syntax": {"before anything is asked", "platform", []string{ref, "--insecure", "--platform", "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := satchel(t, append([]string{"render", "--install-namespace", "demo"}, tc.args...)...)
			if got.Code != kit.ExitError || !strings.Contains(got.Err, tc.want) {
				t.Errorf("%s: got %s", tc.reason, got)
			}
		})
	}
	nothingLeft(t, temporary)
}

func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("%d temporary files are left, such as %s", len(left), left[0].Name())
	}
}

// TestRenderInterrupted interrupts the command while a registry does not answer.
func TestRenderInterrupted(t *testing.T) {
	asked := make(chan struct{}, 16)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		<-asked
		interrupt()
	}()
	var out, errOut bytes.Buffer
	started := time.Now()
	code := Run(ctx, kit.Program{Path: "satchel", Now: time.Now, Streams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}},
		[]string{"render", strings.TrimPrefix(server.URL, "http://") + "/slow:v1", "--insecure", "--install-namespace", "demo"})
	if code != kit.ExitInterrupted || out.Len() > 0 || errOut.String() != "Interrupted.\n" {
		t.Errorf("exit %d, %s%s", code, out.String(), errOut.String())
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	nothingLeft(t, temporary)
}
