// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// A commit that does not touch the bundle is shown by the deployment after one write of its status, and nothing is applied.
func TestOriginOfOtherCommit(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	git, err := upstream.NewGit()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = git.Close() })
	push := func(readme string) string {
		t.Helper()
		files := fstest.MapFS{"README.md": {Data: []byte(readme)}}
		for name, file := range configMaps("kept", 2) {
			files["bundle/"+name] = file
		}
		hash, err := git.Commit(readme, files)
		if err != nil {
			t.Fatal(err)
		}
		return "main@sha1:" + hash
	}
	first := push("first")
	key := r.Deploy(t, namespace, "app", "", func(d *v1alpha1.BundleDeployment) {
		d.Spec.Source.Sources = []v1alpha1.Source{{Git: &v1alpha1.GitSource{
			URL: git.URL(), Path: "bundle", Ref: &v1alpha1.GitRef{Branch: "main"},
		}}}
	})
	before := r.Ready(t, key)
	if before.Status.Applied.OriginRevision != first {
		t.Errorf("applied is %q, not %q", before.Status.Applied.OriginRevision, first)
	}
	r.waitForNoWrites(t, namespace)
	mark := r.mark(t)
	second := push("second")
	after := r.Until(t, key, "the new commit", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Applied.OriginRevision == second && conditions.IsTrue(d, meta.ReadyCondition)
	})
	if after.Status.Applied.Revision != before.Status.Applied.Revision || len(after.Status.History) != 1 || after.Status.History[0].OriginRevision != first {
		t.Errorf("applied is %s, the history is %+v", after.Status.Applied.Revision, after.Status.History)
	}
	r.waitForNoWrites(t, namespace)
	var ofDeployment, others []string
	for _, write := range r.writes(t, mark, namespace) {
		switch {
		case strings.Contains(write, "/bundledeployments/app/status"):
			ofDeployment = append(ofDeployment, write)
		case !strings.Contains(write, "/bundlesources/app/status"):
			others = append(others, write)
		}
	}
	if len(ofDeployment) != 1 || len(others) > 0 {
		t.Errorf("wanted is one write of the status:\n%s\n%s", strings.Join(ofDeployment, "\n"), strings.Join(others, "\n"))
	}
}
