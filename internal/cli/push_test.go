// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/satchel-dev/satchel/internal/cli/author"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/tests/clirig"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// registryHost starts a real registry, and hides the logins of the user who runs the tests.
func registryHost(t *testing.T) string {
	t.Helper()
	server := upstream.NewRegistry(t.Context())
	t.Cleanup(server.Close)
	noLogins(t)
	return server.Host()
}

func noLogins(t *testing.T) {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("REGISTRY_AUTH_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("SOURCE_DATE_EPOCH", "")
}

// keyPair writes a key pair as cosign does.
func keyPair(t *testing.T, dir, name, password string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := encrypted.Encrypt(der, []byte(password))
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".key": {Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: sealed}, name + ".pub": {Type: "PUBLIC KEY", Bytes: public}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

var hostPort = regexp.MustCompile(`(127\.0\.0\.1|localhost):[0-9]+`)

// TestPublish runs build, push, tag, verify and pull on a bundle; each prints the same digest.
func TestPublish(t *testing.T) {
	host := registryHost(t)
	bundle, err := filepath.Abs(initOperator)
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.CopyFS("bundle", os.DirFS(bundle)); err != nil {
		t.Fatal(err)
	}
	keyPair(t, ".", "cosign", "CANARY-password")
	keyPair(t, ".", "other", "")
	t.Setenv("COSIGN_PASSWORD", "CANARY-password")
	var said strings.Builder
	run := func(code int, args ...string) outcome {
		t.Helper()
		got := satchel(t, args...)
		if got.Code != code {
			t.Fatalf("satchel %s: %s", strings.Join(args, " "), got)
		}
		said.WriteString("$ satchel " + hostPort.ReplaceAllString(strings.Join(args, " "), "HOST") + "\n" + hostPort.ReplaceAllString(got.String(), "HOST") + "\n")
		return got
	}
	ref := host + "/org/sample:v0.1.0"
	run(kit.ExitOK, "bundle", "build", "bundle", "-o", "sample.tar")
	digest := strings.TrimSpace(run(kit.ExitOK, "bundle", "build", "bundle", "--print", "name").Out)
	_, source, _ := strings.Cut(run(kit.ExitOK, "bundle", "push", "bundle", ref, "--sign-key", "cosign.key").Out, "In a BundleDeployment:\n")
	if clirig.Admitted(t, "apiVersion: satchel.dev/v1alpha1\nkind: BundleDeployment\nmetadata: {name: sample}\nspec:\n  serviceAccountName: installer\n"+source) == 0 || source == "" {
		t.Errorf("no source is printed: %q", source)
	}
	if got := run(kit.ExitOK, "bundle", "push", "sample.tar", ref, "-o", "name", "--sign-key", "cosign.key"); got.Out != ref+"@"+digest+"\n" {
		t.Errorf("the archive is %s, and the folder %s", got.Out, digest)
	}
	run(kit.ExitOK, "bundle", "verify", ref, "--key", "cosign.pub")
	run(kit.ExitNo, "bundle", "verify", ref, "--key", "other.pub")
	run(kit.ExitOK, "validate", ref, "--insecure")
	if left := filesIn(t, "."); strings.Contains(left, ".satchel-") || strings.Contains(said.String(), "CANARY") {
		t.Errorf("left: %s; said:\n%s", left, &said)
	}
	t.Chdir(home)
	golden(t, "publish/transcript", said.String())
}

// TestPushWhatIsIgnored leaves out ignored files, by the list in the folder and on the command line.
func TestPushWhatIsIgnored(t *testing.T) {
	host := registryHost(t)
	dir := laidOut(t, map[string]string{"a.yaml": initConfigMap, "docs/x.md": "x", "b.txt": "x", ".git/config": "x", ".satchelignore": "# not for clusters\n/docs/\n"})
	if err := os.Symlink("a.yaml", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	got := satchel(t, "bundle", "push", dir, host+"/org/a:v1", "--ignore", "*.txt", "-o", "json", "--source", "https://git.example.org/a", "--revision", "main", "--created", "2026-01-02T03:04:05Z", "--annotation", "x=y")
	var p author.Publication
	if err := json.Unmarshal([]byte(got.Out), &p); err != nil || got.Code != kit.ExitOK {
		t.Fatal(err, got)
	}
	if p.Files != 1 || p.Format != "plain+v0" || p.Kind != "artifact" || p.Reference != host+"/org/a:v1" || !strings.HasPrefix(p.Content, "sha256:") {
		t.Errorf("%+v", p)
	}
	if !strings.Contains(got.Err, "link.yaml is a symbolic link and left out") {
		t.Errorf("%s", got)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1767323045") // the same time
	if again := satchel(t, "bundle", "push", dir, host+"/org/a:v1", "--ignore", "*.txt", "-o", "name", "--source", "https://git.example.org/a", "--revision", "main", "--annotation", "x=y"); again.Out != p.Pinned()+"\n" {
		t.Errorf("with SOURCE_DATE_EPOCH: %s, want %s", again, p.Pinned())
	}
}

func TestPublishRefuses(t *testing.T) {
	host := registryHost(t)
	dir := laidOut(t, map[string]string{"a.yaml": initConfigMap})
	keyPair(t, dir, "cosign", "secret")
	bad := laidOut(t, map[string]string{`a\b.yaml`: initConfigMap})
	layout := filepath.Join(t.TempDir(), "a.tar")
	if got := satchel(t, "bundle", "build", dir, "-o", layout); got.Code != kit.ExitOK {
		t.Fatal(got)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":          {[]string{"bundle", "push"}, "bundle push needs a folder or layout, and a reference; got none"},
		"no tag":           {[]string{"bundle", "push", dir, host + "/org/a"}, "has no tag: give one, such as " + host + "/org/a:v1.0.0"},
		"a digest":         {[]string{"bundle", "push", dir, host + "/org/a@sha256:" + strings.Repeat("0", 64)}, "names a digest, which only the content decides"},
		"no reference":     {[]string{"bundle", "push", dir, "A B"}, `"A B" is no reference`},
		"no folder":        {[]string{"bundle", "push", "./none", host + "/org/a:v1"}, "reading ./none: no such file"},
		"a file":           {[]string{"bundle", "push", dir + "/a.yaml", host + "/org/a:v1"}, "it is a file: give the folder of the bundle"},
		"an unsafe name":   {[]string{"bundle", "push", bad, host + "/org/a:v1"}, `file "a\\b.yaml": its name has a backslash`},
		"no key":           {[]string{"bundle", "push", dir, host + "/org/a:v1", "--sign-key", "./none"}, "reading the key ./none: no such file"},
		"no password":      {[]string{"bundle", "push", dir, host + "/org/a:v1", "--sign-key", dir + "/cosign.key"}, "set COSIGN_PASSWORD"},
		"a public key":     {[]string{"bundle", "push", dir, host + "/org/a:v1", "--sign-key", dir + "/cosign.pub"}, "no private key that cosign knows"},
		"an annotation":    {[]string{"bundle", "push", dir, host + "/org/a:v1", "--annotation", "x"}, "is not of the form KEY=VALUE"},
		"no time":          {[]string{"bundle", "push", dir, host + "/org/a:v1", "--created", "now"}, "is no time such as"},
		"a pattern":        {[]string{"bundle", "push", dir, host + "/org/a:v1", "--ignore", "["}, "is malformed"},
		"flags of a build": {[]string{"bundle", "push", layout, host + "/org/a:v1", "--ignore", "x"}, "give the flags about its content to build"},
		"no archive":       {[]string{"bundle", "build", dir, "-o", "x.zip"}, "has to end in .tar"},
		"verify what":      {[]string{"bundle", "verify", host + "/org/a:v1"}, "bundle verify needs --key"},
		"verify no key":    {[]string{"bundle", "verify", host + "/org/a:v1", "--key", "./none"}, "reading the key ./none"},
		"no server":        {[]string{"bundle", "push", dir, "127.0.0.1:1/org/a:v1"}, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			got := satchel(t, c.args...)
			if got.Code != kit.ExitError || !strings.Contains(got.Err, c.want) || strings.Contains(got.Err, "secret") {
				t.Errorf("%s", got)
			}
		})
	}
}

// TestPlainHTTPIsAskedFor: a registry without TLS that is not on loopback needs a flag.
func TestPlainHTTPIsAskedFor(t *testing.T) {
	for host, want := range map[string]bool{"localhost:5000": true, "localhost": true, "127.0.0.1:1": true, "127.1.2.3": true, "[::1]:5000": true, "ghcr.io": false, "10.0.0.1:5000": false, "localhost.example.org": false, "registry.local": false} {
		if got := bundle.IsLoopback(host); got != want {
			t.Errorf("isLoopback(%q) = %v", host, got)
		}
	}
	a := testApp(&bytes.Buffer{})
	for insecure, refused := range map[bool]bool{false: true, true: false} {
		ref, err := bundle.ImageReference("10.255.255.1:5000/a:v1", insecure)
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequest(http.MethodGet, "http://10.255.255.1:5000/v2/", nil)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err = bundle.Registry(a, ref, insecure).Client.Transport.RoundTrip(request.WithContext(ctx))
		cancel()
		if got := err != nil && strings.Contains(author.PlainHTTPHint(err).Error(), "add --insecure"); got != refused {
			t.Errorf("--insecure=%v: %v", insecure, err)
		}
	}
}

// TestLoginsAreUsed: push and the commands that read images log in as docker did.
func TestLoginsAreUsed(t *testing.T) {
	noLogins(t)
	backend := upstream.NewRegistry(t.Context())
	defer backend.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "CANARY" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`))
			return
		}
		backend.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	dir := laidOut(t, map[string]string{"a.yaml": initConfigMap})
	got := satchel(t, "bundle", "push", dir, host+"/org/a:v1")
	if got.Code != kit.ExitError || !strings.Contains(got.Err, "401 Unauthorized") || !strings.Contains(got.Err, "docker login "+host) {
		t.Errorf("without a login: %s", got)
	}
	for _, password := range []string{"wrong", "CANARY"} {
		code := kit.ExitError
		if password == "CANARY" {
			code = kit.ExitOK
		}
		config := `{"auths":{"` + host + `":{"username":"me","password":"` + password + `"}}}`
		if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		got := satchel(t, "bundle", "push", dir, host+"/org/a:v1")
		if got.Code != code || strings.Contains(got.Err, "CANARY") || code != kit.ExitOK && !strings.Contains(got.Err, "check the login for "+host) {
			t.Errorf("with the password %s: %s", password, got)
		}
	}
	if got := satchel(t, "validate", host+"/org/a:v1", "--insecure"); got.Code != kit.ExitOK {
		t.Errorf("%s", got)
	}
	broken := `{"credHelpers":{"` + host + `":"does-not-exist"}}`
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"bundle", "push", dir, host + "/org/a:v1"}, {"validate", host + "/org/a:v1", "--insecure"}} {
		if got := satchel(t, args...); got.Code != kit.ExitError || !strings.Contains(got.Err, "docker-credential-does-not-exist") || strings.Contains(got.Err, "cannot be reached") {
			t.Errorf("a helper that is not there: %s", got)
		}
	}
}

// TestPushIsInterrupted checks that an interrupted push ends soon, for any behaviour of the registry.
func TestPushIsInterrupted(t *testing.T) {
	noLogins(t)
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	var out, errOut bytes.Buffer
	code := Run(ctx, kit.Program{Path: "satchel", Now: time.Now, Streams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}},
		[]string{"bundle", "push", bundles + "plain", strings.TrimPrefix(server.URL, "http://") + "/a:v1"})
	if code != kit.ExitInterrupted || !strings.Contains(errOut.String(), "Interrupted.") {
		t.Errorf("exit %d: %s", code, &errOut)
	}
	nothingLeft(t, temporary)
}
