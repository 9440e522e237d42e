// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/upstream"
)

const (
	mainBranch = "refs/heads/main"
	versionTag = "refs/tags/v1.0.0"
)

// F17: rewritten history is followed, with every kind of reference. If a reference is
// deleted, the condition says so, and the published artifact stays.
func TestF17RewrittenAndDeletedReferences(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	git := newGit(t)
	base, replaced := commit(t, git, "one"), commit(t, git, "two")
	move(t, git, replaced, mainBranch, versionTag, "refs/heads/other")
	keys := map[string]client.ObjectKey{}
	for name, ref := range map[string]*v1alpha1.GitRef{
		"default": nil, "branch": {Branch: "main"}, "name": {Name: mainBranch}, "tag": {Tag: "v1.0.0"}, "range": {Version: "1.x"},
	} {
		keys[name] = r.create(t, namespace, name, []v1alpha1.Source{{Git: &v1alpha1.GitSource{URL: git.URL(), Ref: ref}}}, every(time.Hour))
	}
	for name, key := range keys {
		if s := r.ready(t, key); s.Status.Resolved[0].Digest != "sha1:"+replaced {
			t.Fatalf("%s begins with\n%s", name, describe(s))
		}
	}

	move(t, git, base, mainBranch)
	rewritten := commit(t, git, "three")
	move(t, git, rewritten, versionTag)
	for name, key := range keys {
		r.refresh(t, key)
		s := r.ready(t, key)
		if s.Status.Resolved[0].Digest != "sha1:"+rewritten || !slices.Equal(names(t, download(t, s.Status.Artifact)), []string{"three.yaml"}) {
			t.Errorf("%s does not follow the forced push: %s\n%s", name, s.Status.Resolved[0].Digest, describe(s))
		}
	}

	for _, reference := range []string{mainBranch, versionTag} {
		if err := git.Delete(reference); err != nil {
			t.Fatal(err)
		}
	}
	for name, key := range keys {
		r.keepsWhatWasDeleted(t, name, key, "sha1:"+rewritten)
	}

	move(t, git, rewritten, mainBranch, versionTag)
	for _, key := range keys {
		r.refresh(t, key)
		r.ready(t, key)
	}
}

// keepsWhatWasDeleted checks a source with a deleted reference.
func (r *rig) keepsWhatWasDeleted(t *testing.T, name string, key client.ObjectKey, commit string) {
	t.Helper()
	gone := r.refresh(t, key)
	message := conditions.GetMessage(gone, meta.ReadyCondition)
	if conditions.GetReason(gone, meta.ReadyCondition) != v1alpha1.ReasonNotFound || !conditions.IsTrue(gone, v1alpha1.FetchFailedCondition) ||
		conditions.IsTrue(gone, meta.StalledCondition) || !strings.Contains(message, "check the URL and the reference") {
		t.Errorf("%s, deleted:\n%s", name, describe(gone))
	}
	if gone.Status.Artifact == nil || len(gone.Status.Resolved) != 1 || gone.Status.Resolved[0].Digest != commit {
		t.Fatalf("%s: what was published is gone:\n%s", name, describe(gone))
	}
	download(t, gone.Status.Artifact)
}

// commit adds a commit to the main branch.
func commit(t *testing.T, git *upstream.Git, content string) string {
	t.Helper()
	hash, err := git.Commit(content, files(content+".yaml", content))
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// move points references at a commit.
func move(t *testing.T, git *upstream.Git, commit string, references ...string) {
	t.Helper()
	for _, reference := range references {
		if err := git.Move(reference, commit); err != nil {
			t.Fatal(err)
		}
	}
}
