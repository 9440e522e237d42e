// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"archive/tar"
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// TestF54LinksOfAnArchive: links that look like files of a bundle are named in the status, in an event and in the artifact, but for those
// that spec.ignore leaves out on purpose.
func TestF54LinksOfAnArchive(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, header := range []*tar.Header{
		{Typeflag: tar.TypeReg, Name: "a.yaml", Mode: 0o644},
		{Typeflag: tar.TypeSymlink, Name: "b.yaml", Linkname: "a.yaml"},
		{Typeflag: tar.TypeLink, Name: "c.yaml", Linkname: "a.yaml"},
		{Typeflag: tar.TypeSymlink, Name: "LICENSE", Linkname: "a.yaml"},
		{Typeflag: tar.TypeSymlink, Name: "docs/example.yaml", Linkname: "../a.yaml"},
	} {
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	server := newArchive(t, packed.Bytes())
	key := r.create(t, namespace, "links", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: server.URL + "/b.tar"}}}, func(s *v1alpha1.BundleSource) { s.Spec.Ignore = "/docs/" })
	s := r.ready(t, key)
	if text := strings.Join(s.Status.Warnings, "\n"); len(s.Status.Warnings) != 2 || !strings.Contains(text, `"b.yaml"`) || !strings.Contains(text, `"c.yaml"`) {
		t.Errorf("the warnings are %q", s.Status.Warnings)
	}
	r.told(t, s, "\"b.yaml\" is a symbolic link")
	content := download(t, s.Status.Artifact)
	if got := names(t, content); !slices.Equal(got, []string{"a.yaml"}) {
		t.Errorf("the artifact has %v", got)
	}
	tree, err := fetch.NewTree(t.TempDir(), fetch.DefaultLimits())
	if err == nil {
		err = tree.UntarGzip(t.Context(), bytes.NewReader(content))
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"LICENSE", "b.yaml", "c.yaml"}, tree.LeftOut()); diff != "" {
		t.Error(diff)
	}
}
