// SPDX-License-Identifier: Apache-2.0

//go:build linux

package session

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/installation"
)

const namespace = "shop"

// web is a bundle of a small web server.
func web(image, more string) fstest.MapFS {
	return fstest.MapFS{
		"web/config.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: hello}\n")},
		"web/web.yaml": {Data: []byte(strings.NewReplacer("IMAGE", image, "MORE", more).Replace(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "IMAGE"}]
MORE`))},
	}
}

// signer is the key of a user who signs commits, and its public part.
func signer(t *testing.T) (*openpgp.Entity, string) {
	t.Helper()
	key, err := openpgp.NewEntity("Ada", "", "ada@example.org", nil)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	armored, err := armor.Encode(&text, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := key.Serialize(armored); err != nil {
		t.Fatal(err)
	}
	if err := armored.Close(); err != nil {
		t.Fatal(err)
	}
	return key, text.String()
}

// TestSession takes a deployment from being seen to being traced: it breaks, one command
// says why, the fix is previewed, approved and rolled back.
func TestSession(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	key, public := signer(t)
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "authors"}, StringData: map[string]string{"ada.asc": public}},
	} {
		if err := r.admin.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	if err := installation.Account(ctx, r.admin, namespace, "installer", "admin", namespace); err != nil {
		t.Fatal(err)
	}
	commit := func(message string, files fstest.MapFS) {
		t.Helper()
		if _, err := r.git.CommitSigned(message, files, key); err != nil {
			t.Fatal(err)
		}
	}
	commit("serve the web", web("registry.example.org/web:1.0.0", ""))
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	d.Spec.ServiceAccountName = "installer"
	d.Spec.Source = &v1alpha1.BundleSourceSpec{
		Interval: v1alpha1.Duration{Duration: time.Hour},
		Sources: []v1alpha1.Source{{Git: &v1alpha1.GitSource{
			URL: r.git.URL(), Path: "web",
			Verify: &v1alpha1.GitVerification{SecretRef: v1alpha1.LocalReference{Name: "authors"}},
		}}},
	}
	if err := r.admin.Create(ctx, d); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(r.dir, "user.kubeconfig")
	if err := writeKubeconfig(kubeconfig, r.cp.RESTConfig(), namespace); err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, program: filepath.Join(r.dir, "satchel"), kubeconfig: kubeconfig, names: map[string]string{
		r.git.URL(): "https://git.example.org/web.git",
	}}

	s.say("What is installed?")
	s.run(0, "wait", "web")
	s.run(0, "get")
	s.run(0, "tree", "web")

	s.say("A commit brings a version that fits on no node.")
	commit("use the fast disks", web("registry.example.org/web:1.1.0", "      nodeSelector: {disk: fast}"))
	s.run(1, "reconcile", "web", "--with-source", "--timeout=5s")
	s.say("Why?")
	s.run(1, "status", "web")

	s.say("From now on, changes need an approval. A fix is committed and waits; the applied revision stays.")
	s.change(r, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Approval = &v1alpha1.ApprovalOptions{Mode: v1alpha1.ApprovalManual}
	})
	commit("any disk will do, with an account", withAccount(web("registry.example.org/web:1.1.1", "      serviceAccountName: web")))
	s.run(1, "reconcile", "web", "--with-source")
	s.say("What would it change?")
	s.run(1, "plan", "web")
	s.run(1, "plan", "web", "-o", "diff")
	s.say("That is what was meant.")
	s.run(0, "approve", "web", "--yes", "--reason", "any disk will do")
	s.run(0, "wait", "web")
	s.run(0, "history", "web")

	s.say("Roll back to the first version, until it is known why the new one is slow.")
	s.run(0, "rollback", "web", "--to", s.oldest(r), "--plan=false", "--wait=false")
	s.eventually("the rollback waits for an approval", func() bool { return s.waits(r) })
	s.run(0, "approve", "web", "--yes", "--reason", "slow")
	s.run(0, "wait", "web")

	s.say("Which deployment owns this Pod, and who signed its content?")
	pod := s.pod(r)
	s.name(pod, "web-<pod>")
	s.run(0, "trace", "pod/"+pod)
	s.compare("session.txt")
}

// withAccount adds a ServiceAccount that may read the settings.
func withAccount(files fstest.MapFS) fstest.MapFS {
	files["web/account.yaml"] = &fstest.MapFile{Data: []byte(`apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [web], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects: [{kind: ServiceAccount, name: web}]
`)}
	return files
}
