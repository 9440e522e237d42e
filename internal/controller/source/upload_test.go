// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// uploader makes a ServiceAccount with the role edit in a namespace, which may not be its own, and returns a client with
// its token.
func (r *rig) uploader(t *testing.T, own, in string) upload.Client {
	t.Helper()
	if err := installation.Account(t.Context(), r.admin, own, "uploader", "satchel-edit", in); err != nil {
		t.Fatal(err)
	}
	return r.withToken(token(t, r, own, "uploader", upload.Audience))
}

func (r *rig) withToken(token string) upload.Client {
	return upload.Client{BaseURL: "http://" + r.uploads, Token: token, Transport: upload.NewTransport()}
}

func snapshot(t *testing.T, files fstest.MapFS) *upload.Snapshot {
	t.Helper()
	s, err := upload.Take(t.Context(), files, fetch.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func anUpload(digest string) []v1alpha1.Source {
	return []v1alpha1.Source{{Upload: &v1alpha1.UploadSource{Digest: digest}}}
}

func bring(t *testing.T, c upload.Client, key client.ObjectKey, s *upload.Snapshot) error {
	t.Helper()
	return c.Put(t.Context(), upload.Target{Namespace: key.Namespace, Name: key.Name, Digest: s.Digest},
		func(w io.Writer) error { return s.Write(t.Context(), w) })
}

func uploadEnded(err error) upload.Reason {
	var said *upload.Error
	if errors.As(err, &said) {
		return said.Reason
	}
	return ""
}

// A source waits for its upload, publishes it, keeps it while it waits for the next one, and reports a lost artifact.
func TestUpload(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	c := r.uploader(t, namespace, namespace)
	first, second := snapshot(t, fstest.MapFS{"a.yaml": {Data: []byte("a: 1\n")}}), snapshot(t, fstest.MapFS{"a.yaml": {Data: []byte("a: 2\n")}})

	key := r.create(t, namespace, "folder", anUpload(first.Digest), nil)
	waits := r.unready(t, key, v1alpha1.ReasonUploadPending)
	if text := conditions.GetMessage(waits, meta.ReadyCondition); !strings.Contains(text, first.Digest) || !strings.Contains(text, "satchel run folder FOLDER -n "+namespace) {
		t.Errorf("it says %q", text)
	}
	if conditions.IsStalled(waits) || !conditions.IsTrue(waits, v1alpha1.FetchFailedCondition) {
		t.Errorf("the conditions are\n%s", describe(waits))
	}
	if err := bring(t, c, key, first); err != nil {
		t.Fatal(err)
	}
	ready := r.ready(t, key)
	if ready.Status.Artifact.Revision != first.Digest || ready.Status.Resolved[0].Digest != first.Digest {
		t.Errorf("published is %s of %v", ready.Status.Artifact.Revision, ready.Status.Resolved)
	}
	download(t, ready.Status.Artifact)
	if err := bring(t, c, key, first); err != nil {
		t.Errorf("once more: %v", err)
	}

	r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.Sources = anUpload(second.Digest) })
	waits = r.unready(t, key, v1alpha1.ReasonUploadPending)
	if waits.Status.Artifact == nil || waits.Status.Artifact.Revision != first.Digest {
		t.Errorf("what was published before is not: %v", waits.Status.Artifact)
	}
	if err := bring(t, c, key, second); err != nil {
		t.Fatal(err)
	}
	if got := r.ready(t, key).Status.Artifact.Revision; got != second.Digest {
		t.Errorf("published is %s", got)
	}

	if err := os.RemoveAll(filepath.Join(r.storage, "bundlesource", namespace)); err != nil {
		t.Fatal(err)
	}
	if lost := r.refresh(t, key); conditions.GetReason(lost, meta.ReadyCondition) != v1alpha1.ReasonUploadPending || lost.Status.Artifact != nil {
		t.Errorf("after its storage was lost:\n%s", describe(lost))
	}
	if err := bring(t, c, key, second); err != nil {
		t.Fatal(err)
	}
	r.ready(t, key)
}

// T3, T4, T12: only a ServiceAccount of the namespace with permission uploads, with a token for uploads, and only content that
// a source there names. Others cannot find out what exists.
func TestT12UploadsNeedPermission(t *testing.T) {
	r := newRig(t)
	mine, other := controlplane.NewNamespace(t, r.cp), controlplane.NewNamespace(t, r.cp)
	s := snapshot(t, fstest.MapFS{"a": {Data: []byte(mine)}})
	key := r.create(t, mine, "folder", anUpload(s.Digest), nil)
	foreign := r.uploader(t, other, mine) // bound in this namespace, but a ServiceAccount of another one
	if err := installation.Account(t.Context(), r.admin, mine, "viewer", "satchel-view", mine); err != nil {
		t.Fatal(err)
	}
	right := r.uploader(t, mine, mine)
	for name, tc := range map[string]struct {
		reason string
		client upload.Client
		key    client.ObjectKey
		want   upload.Reason
	}{
		"no token":            {"unauthenticated", r.withToken(""), key, upload.Unauthenticated},
		"rubbish":             {"no token", r.withToken("rubbish"), key, upload.Unauthenticated},
		"forged":              {"its signature is wrong", r.withToken(right.Token[:strings.LastIndex(right.Token, ".")] + ".AAAA"), key, upload.Unauthenticated},
		"expired":             {"it says so itself", r.withToken(stale()), key, upload.Unauthenticated},
		"revoked":             {"what it was bound to is gone", r.withToken(r.revoked(t, mine)), key, upload.Unauthenticated},
		"of the API":          {"a stolen one is good for nothing here", r.withToken(token(t, r, mine, "uploader", "")), key, upload.Unauthenticated},
		"of the artifacts":    {"nor is one for reading", r.withToken(token(t, r, mine, "uploader", audience)), key, upload.Unauthenticated},
		"viewer":              {"it may read only", r.withToken(token(t, r, mine, "viewer", upload.Audience)), key, upload.Forbidden},
		"other tenant":        {"ServiceAccounts upload in their own namespace only", foreign, key, upload.Forbidden},
		"not there":           {"who may not know learns nothing", foreign, client.ObjectKey{Namespace: mine, Name: "none"}, upload.Forbidden},
		"not there, may know": {"who may is told", right, client.ObjectKey{Namespace: mine, Name: "none"}, upload.NotFound},
	} {
		if err := bring(t, tc.client, tc.key, s); uploadEnded(err) != tc.want {
			t.Errorf("%s: %s: %v, want %s", name, tc.reason, err, tc.want)
		}
	}
	unnamed := snapshot(t, fstest.MapFS{"a": {Data: []byte("something else")}})
	if err := bring(t, right, key, unnamed); uploadEnded(err) != upload.NotNamed {
		t.Errorf("content that the source does not name: %v", err)
	}
	if _, err := os.Stat(filepath.Join(r.storage, "bundlesource", mine)); !os.IsNotExist(err) {
		t.Errorf("something was stored: %v", err)
	}
	if err := bring(t, right, key, s); err != nil {
		t.Errorf("who may: %v", err)
	}
	r.ready(t, key)
}

// stale is a token with an expired claim.
func stale() string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return part(`{"alg":"RS256"}`) + "." + part(fmt.Sprintf(`{"aud":[%q],"exp":%d}`, upload.Audience, time.Now().Add(-time.Minute).Unix())) + ".AAAA"
}

// revoked is a token of the correct ServiceAccount and audience that is bound to a deleted Secret.
func (r *rig) revoked(t *testing.T, namespace string) string {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bound"}}
	if err := r.admin.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(r.cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	made, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "uploader", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:      []string{upload.Audience},
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.admin.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	return made.Status.Token
}

// A permission for one name applies to that name only.
func TestUploadPermissionByName(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}, Rules: []rbacv1.PolicyRule{{
		Verbs: []string{"create"}, APIGroups: []string{"satchel.dev"}, Resources: []string{"bundlesources/upload"}, ResourceNames: []string{"mine"},
	}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "one"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "one"}}}
	for _, o := range []client.Object{&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}, role, binding} {
		if err := r.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s := snapshot(t, fstest.MapFS{"a": {Data: []byte("a")}})
	mine, other := r.create(t, namespace, "mine", anUpload(s.Digest), nil), r.create(t, namespace, "other", anUpload(s.Digest), nil)
	c := r.withToken(token(t, r, namespace, "one", upload.Audience))
	if err := bring(t, c, mine, s); err != nil {
		t.Error(err)
	}
	if err := bring(t, c, other, s); uploadEnded(err) != upload.Forbidden {
		t.Errorf("another name: %v", err)
	}
	r.ready(t, mine)
}

// M1 to M6 over an upload: content that other kinds of sources refuse is refused, and nothing stays on the volume.
func TestM1UploadsOfHostileContent(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	c := r.uploader(t, namespace, namespace)
	digest := "sha256:" + strings.Repeat("a", 64)
	key := r.create(t, namespace, "hostile", anUpload(digest), nil)
	for name, tc := range map[string]struct {
		files map[string]string // name to content; "link:" makes a link
		bytes int
		want  upload.Reason
	}{
		"M1: leaves the tree":    {files: map[string]string{"../../etc/cron": "x"}, want: upload.InvalidContent},
		"M1: absolute":           {files: map[string]string{"/etc/cron": "x"}, want: upload.InvalidContent},
		"M2: link, then through": {files: map[string]string{"a": "link:/etc", "a/passwd": "x"}, want: upload.DigestMismatch},
		"M3: one large file":     {bytes: 65 << 20, want: upload.LimitExceeded},
		"M5: control characters": {files: map[string]string{"a\x1b[31m": "x"}, want: upload.InvalidContent},
		"M6: a flag":             {files: map[string]string{"-rf": "x"}, want: upload.InvalidContent},
	} {
		err := c.Put(t.Context(), upload.Target{Namespace: namespace, Name: key.Name, Digest: digest}, func(w io.Writer) error {
			return hostileTar(w, tc.files, tc.bytes)
		})
		if uploadEnded(err) != tc.want {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(r.storage), "scratch", "upload-*")); len(left) > 0 {
		t.Errorf("left in the scratch folder: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(r.storage, "bundlesource", namespace, key.Name, "*")); len(left) > 0 {
		t.Errorf("left in the store: %v", left)
	}
	r.unready(t, key, v1alpha1.ReasonUploadPending)
}

// An upload to a namespace without remaining quota says so, and the published artifact stays.
func TestUploadBeyondTheQuota(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	c := r.uploader(t, namespace, namespace)
	small, large := snapshot(t, fstest.MapFS{"a": {Data: []byte("a")}}), snapshot(t, fstest.MapFS{"a": {Data: random(t, quota+1)}})
	key := r.create(t, namespace, "folder", anUpload(small.Digest), nil)
	if err := bring(t, c, key, small); err != nil {
		t.Fatal(err)
	}
	r.ready(t, key)
	r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.Sources = anUpload(large.Digest) })
	if err := bring(t, c, key, large); uploadEnded(err) != upload.QuotaExceeded || !strings.Contains(err.Error(), "--storage-quota-per-namespace") {
		t.Errorf("got %v", err)
	}
	if still := r.unready(t, key, v1alpha1.ReasonUploadPending); still.Status.Artifact == nil || still.Status.Artifact.Revision != small.Digest {
		t.Errorf("published is %v", still.Status.Artifact)
	}
}

// Concurrent uploads store the content once.
func TestUploadsAtOnce(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	c := r.uploader(t, namespace, namespace)
	s := snapshot(t, fstest.MapFS{"a": {Data: random(t, 1<<20)}})
	key := r.create(t, namespace, "folder", anUpload(s.Digest), nil)
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			ended <- c.Put(context.Background(), upload.Target{Namespace: namespace, Name: key.Name, Digest: s.Digest},
				func(w io.Writer) error { return s.Write(context.Background(), w) })
		}()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	r.ready(t, key)
	if kept, _ := filepath.Glob(filepath.Join(r.storage, "bundlesource", namespace, key.Name, "*")); len(kept) != 2 {
		t.Errorf("kept are %v, want an archive and its checksum", kept)
	}
}
