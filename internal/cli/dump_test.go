// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/dump"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
)

// seeded is part of every secret of these tests.
const seeded = "s33ded"

func TestRedactText(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"login in a URL":    {"fetching https://user:" + seeded + "@example.org/a: refused", "fetching https://REDACTED@example.org/a: refused"},
		"user in a URL":     {"ssh://git" + seeded + "@example.org/a", "ssh://REDACTED@example.org/a"},
		"query":             {`Get "https://example.org/a.tgz?X-Sig=` + seeded + `&b=c": EOF`, `Get "https://example.org/a.tgz?REDACTED": EOF`},
		"bearer":            {"Authorization: Bearer " + seeded + "abc", "Authorization: REDACTED REDACTED"},
		"web token":         {"got eyJhbGciOiJSUzI1NiJ9.eyJzdWIi" + seeded + ".c2ln" + seeded, "got REDACTED"},
		"key":               {"a\n-----BEGIN RSA PRIVATE KEY-----\n" + seeded + "\n-----END RSA PRIVATE KEY-----\nb", "a\nREDACTED\nb"},
		"unfinished key":    {"-----BEGIN PRIVATE KEY-----\n" + seeded, "REDACTED"},
		"assignment":        {"password=" + seeded + " user=a", "password=REDACTED user=a"},
		"JSON":              {`{"token":"` + seeded + `","name":"a"}`, `{"token":"REDACTED","name":"a"}`},
		"JSON in JSON":      {`{\"api_key\": \"` + seeded + `\", \"a\": 1}`, `{\"api_key\": \"REDACTED\", \"a\": 1}`},
		"GitHub":            {"ghp_" + seeded + "0123456789abcdef", "REDACTED"},
		"AWS":               {"AKIAIOSFODNN7EXAMPLE", "REDACTED"},
		"digest":            {"example.org/a@" + digestA, "example.org/a@" + digestA},
		"digest with a URL": {"oci://example.org/a:v1@" + digestA, "oci://example.org/a:v1@" + digestA},
		"about a Secret":    {`secrets "pull" not found: create it`, `secrets "pull" not found: create it`},
		"plain URL":         {"http://example.org:80/a", "http://example.org:80/a"},
	} {
		if got := printer.RedactText(tc.text); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestRedactObject(t *testing.T) {
	o := parse(t, `
metadata:
  annotations: {satchel.dev/prune: Disabled, mine: `+seeded+`, kubectl.kubernetes.io/last-applied-configuration: `+seeded+`}
  managedFields: [{manager: a}]
spec:
  registryV1: {deploymentConfig: {annotations: {mine: `+seeded+`}, env: [{name: PROXY, value: `+seeded+`}, {name: REF, valueFrom: {secretKeyRef: {name: pull, key: user}}}]}}
  helm: {values: {a: {b: [`+seeded+`, 1]}}}
  template: {spec: {containers: [{args: [--log-level=debug, --admin-token, `+seeded+`, --password=`+seeded+`, last]}]}}
status: {conditions: [{message: "https://a:`+seeded+`@b/c"}]}`)
	printer.RedactObject(o.Object)
	text, err := printer.YamlText(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "dump/object", string(text))
	if strings.Contains(string(text), seeded) {
		t.Error("a secret is left")
	}
}

// unpacked are the files of a dump.
func unpacked(t *testing.T, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil || !filepath.IsLocal(header.Name) || header.Mode != 0o600 {
			t.Fatalf("%s: mode %o, %v", header.Name, header.Mode, err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = string(content)
	}
}

// seed puts secrets wherever a user or a server could have put them.
func (c testCluster) seed() {
	c.T.Helper()
	secret := "https://user:" + seeded + "@example.org/?token=" + seeded
	edit := func(d *v1alpha1.BundleDeployment) {
		d.Annotations = map[string]string{"mine": seeded, "kubectl.kubernetes.io/last-applied-configuration": `{"a":"` + seeded + `"}`}
		d.Spec.Source.Sources = []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: "https://example.org/bundle.tgz?sig=" + seeded}}}
		d.Status.Warnings = []string{"password: " + seeded + " " + steering}
		d.Status.History = []v1alpha1.RevisionRecord{{Revision: revisionA, StartTime: ago(0), Message: "Bearer " + seeded + "token"}}
		with(no(meta.ReadyCondition, v1alpha1.ReasonHealthFailed, "fetching "+secret))(d)
	}
	c.Create(aDeployment(edit, lists(c.T, c.missing("v1", "ConfigMap", "listed"))))
	c.Create(aSource(func(s *v1alpha1.BundleSource) {
		s.Status.Resolved[0].Validator = "token=" + seeded
		s.Status.Conditions = append(s.Status.Conditions, no(v1alpha1.FetchFailedCondition, v1alpha1.ReasonUnreachable, "-----BEGIN PRIVATE KEY-----\n"+seeded))
	}))
	c.object("", "{apiVersion: v1, kind: Secret, metadata: {name: secret}, stringData: {a: "+seeded+"}}")
	c.object("", "{apiVersion: v1, kind: ConfigMap, metadata: {name: secret}, data: {a: "+seeded+"}}")
	c.object("", `{apiVersion: v1, kind: Event, metadata: {name: event}, type: Warning, reason: HealthFailed, message: "see `+secret+`",
  involvedObject: {apiVersion: satchel.dev/v1alpha1, kind: BundleDeployment, name: podinfo, namespace: `+c.Namespace+`}}`)
}

func TestDump(t *testing.T) {
	c := newTestCluster(t)
	c.system()
	c.seed()
	file := filepath.Join(t.TempDir(), "satchel.tar.gz")
	args := []string{"debug", "dump", "--system-namespace", c.Namespace, "--all-namespaces=false", "-o", file}
	got := c.Satchel(args...)
	c.Want(got, kit.ExitOK, file+": ", "  bundledeployments: 1\n", "  bundlesources: 1\n", "  deployments: 2\n", "Could not be read: the log of "+check.DeploymentAccount)
	files := unpacked(t, file)
	for name, content := range files {
		if strings.Contains(content, seeded) || strings.Contains(name, "secret") {
			t.Errorf("a secret is in %s:\n%s", name, content)
		}
		if hidden := hiddenIn(strings.ReplaceAll(content, "\t", "")); hidden != "" {
			t.Errorf("%s: %s", name, hidden)
		}
	}
	if strings.Contains(got.Out+got.Err, seeded) {
		t.Error("a secret is printed")
	}
	for name, text := range map[string]string{
		"README.txt": "Could not be read:\n- the log of", "check.txt": "Kubernetes: v1.", "events.txt": "HealthFailed\tsee https://REDACTED@example.org/?REDACTED",
		"objects/" + c.Namespace + "/bundledeployments/podinfo.yaml":          "historyLimit",
		"objects/" + c.Namespace + "/bundledeployments/podinfo.inventory.txt": "ConfigMap " + c.Namespace + "/listed\tv1\tapplied false",
		"objects/" + c.Namespace + "/bundlesources/podinfo.yaml":              "example.org/podinfo:v1.3.0",
		"definitions/bundledeployments.satchel.dev.yaml":                      "Established",
		"system/deployments/" + check.DeploymentAccount + ".yaml":             "example.org/" + check.DeploymentAccount + ":v0.1.0",
		"system/leases/" + check.DeploymentAccount + ".yaml":                  "holderIdentity: pod-1",
	} {
		if !strings.Contains(files[name], text) {
			t.Errorf("%s lacks %q: %s", name, text, files[name])
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read it: %v %v", info, err)
	}
	c.Want(c.Satchel(args...), kit.ExitError, "exists already: choose another with -o")

	args[len(args)-1] = filepath.Join(t.TempDir(), "unprivileged.tar.gz")
	c.Want(c.Satchel(append(args, "--as", "unprivileged")...), kit.ExitOK, "Could not be read: bundledeployments.satchel.dev in the namespace", "you may not list them")
}

// TestDumpInterrupted checks that an interrupted dump leaves no file.
func TestDumpInterrupted(t *testing.T) {
	c := newTestCluster(t)
	folder := t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out, errOut bytes.Buffer
	code := Run(ctx, kit.Program{Path: "satchel", Now: time.Now, Streams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}},
		[]string{"--kubeconfig", c.CP.KubeconfigPath(), "debug", "dump", "-o", filepath.Join(folder, "a.tar.gz")})
	left, err := os.ReadDir(folder)
	if code != kit.ExitInterrupted || err != nil || len(left) > 0 {
		t.Errorf("exit %d, %v %v: %s", code, left, err, errOut.String())
	}
}

// TestArchiveIsBounded checks that files that are too long are cut, with a note.
func TestArchiveIsBounded(t *testing.T) {
	folder := t.TempDir()
	a, err := dump.NewArchive(filepath.Join(folder, "a.tar.gz"), noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Add("long", bytes.Repeat([]byte("x"), dump.MostOfFile+1)); err != nil {
		t.Fatal(err)
	}
	a.Written = dump.MostOfDump - 1
	if err := errors.Join(a.Add("last", []byte("yyy")), a.Add("none", []byte("z")), a.Close()); err != nil {
		t.Fatal(err)
	}
	a.Drop()
	files := unpacked(t, filepath.Join(folder, "a.tar.gz"))
	if len(files["long"]) > dump.MostOfFile+100 || !strings.HasSuffix(files["long"], "[cut here: the dump is bounded]\n") || !strings.HasPrefix(files["last"], "y\n[cut") || strings.Contains(files["none"], "z") {
		t.Errorf("long %d, last %q, none %q", len(files["long"]), files["last"], files["none"])
	}
	names := []string{}
	left, _ := os.ReadDir(folder)
	for _, file := range left {
		names = append(names, file.Name())
	}
	if !slices.Equal(names, []string{"a.tar.gz"}) {
		t.Errorf("left: %v", names)
	}
}

func TestSafeName(t *testing.T) {
	for name, want := range map[string]string{"a-b.c": "a-b.c", "../../etc": "_.._etc", "..": "", "a/b\x1b": "a_b_"} {
		if got := dump.SafeName(name); got != want {
			t.Errorf("safeName(%q) = %q, want %q", name, got, want)
		}
	}
}
