// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/manager"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(controlplane.RunMain(m))
}

// newControlPlane returns the shared control plane with Satchel's CRDs, which the caches of a manager need.
func newControlPlane(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	cp := controlplane.Shared(t)
	install.Do(func() {
		if err := installation.Install(t.Context(), cp.RESTConfig()); err != nil {
			t.Fatal(err)
		}
	})
	return cp
}

var install sync.Once

// replica is a process that serves artifacts when it leads.
type replica struct {
	store       *storage.Store
	addr, ready string // address of artifacts, URL of readiness
	leads       <-chan struct{}
	stop        func()
}

func startReplica(t *testing.T, cp *controlplane.ControlPlane, namespace string, change func(*ServerOptions)) *replica {
	t.Helper()
	addr, health := mustAddr(t), mustAddr(t)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	options := manager.Options{}
	options.BindFlags(flags)
	if err := flags.Parse([]string{
		"--enable-leader-election", "--leader-election-retry-period=100ms", "--metrics-addr=0", "--health-addr=" + health, "--namespace=" + namespace,
	}); err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(cp.RESTConfig(), "replicas", options)
	if err != nil {
		t.Fatal(err)
	}
	given := ServerOptions{Addr: addr, AdvAddr: addr}
	if change != nil {
		change(&given)
	}
	store, err := storage.Open(storage.Options{Dir: t.TempDir(), BaseURL: "http://" + addr})
	if err != nil {
		t.Fatal(err)
	}
	if err := given.add(mgr, server.NewHandler(store, server.Options{})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop := func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil
	}
	t.Cleanup(stop)
	return &replica{store: store, addr: addr, ready: "http://" + health + "/readyz", leads: mgr.Elected(), stop: stop}
}

// patience bounds waiting; it is many times what is needed.
const patience = 60 * time.Second

// keep stores something for a source of a namespace.
func keep(t *testing.T, store *storage.Store, namespace string) meta.Artifact {
	t.Helper()
	a, err := store.Put(t.Context(), artifact.SourceOwner(namespace, "app"), "", fstest.MapFS{"a": {Data: []byte(namespace)}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustAddr(t *testing.T) string {
	t.Helper()
	addr, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// eventually waits until a URL is answered with a status.
func eventually(t *testing.T, client *http.Client, url string, want int) {
	t.Helper()
	var got string
	err := wait.PollUntilContextTimeout(t.Context(), 30*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		answer, err := client.Do(request)
		if err != nil {
			got = err.Error()
			return false, nil
		}
		got = answer.Status
		return answer.StatusCode == want, answer.Body.Close()
	})
	if err != nil {
		t.Fatalf("%s: last answer %s, want %d", url, got, want)
	}
}

// status gets a URL once.
func status(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

func leading(t *testing.T, r *replica) {
	t.Helper()
	select {
	case <-r.leads:
	case <-time.After(patience):
		t.Fatal("the replica does not lead")
	}
}

// F24: a standby replica is ready and serves nothing, although it has artifacts in
// storage; when the leader ends, it becomes the leader.
func TestF24AReplicaThatDoesNotLeadServesNothing(t *testing.T) {
	cp := newControlPlane(t)
	namespace := controlplane.NewNamespace(t, cp)
	first := startReplica(t, cp, namespace, nil)
	leading(t, first)
	second := startReplica(t, cp, namespace, nil)
	of := keep(t, first.store, namespace)
	stale := keep(t, second.store, namespace)
	eventually(t, http.DefaultClient, first.ready, http.StatusOK)
	eventually(t, http.DefaultClient, second.ready, http.StatusOK)
	eventually(t, http.DefaultClient, "http://"+first.addr+"/"+of.Path, http.StatusOK)
	for _, path := range []string{"/" + stale.Path, "/", "/" + filepath.Dir(stale.Path) + "/" + strings.Repeat("0", 64) + ".tar.gz"} {
		if got := status(t, "http://"+second.addr+path); got != http.StatusServiceUnavailable {
			t.Errorf("a replica that does not lead answers %d to %s", got, path)
		}
	}
	first.stop()
	began := time.Now()
	leading(t, second)
	t.Logf("the second replica leads %v after the first one ended", time.Since(began).Round(time.Millisecond))
	eventually(t, http.DefaultClient, "http://"+second.addr+"/"+stale.Path, http.StatusOK)
}

// With a certificate artifacts are served over TLS only, and a new certificate is used
// without a restart.
func TestArtifactsOverTLS(t *testing.T) {
	cp := newControlPlane(t)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	issue(t, cert, key, 1)
	serving := startReplica(t, cp, controlplane.NewNamespace(t, cp), func(o *ServerOptions) { o.TLSCert, o.TLSKey = cert, key })
	leading(t, serving)
	a := keep(t, serving.store, "tls")
	trusting, err := loader.NewClient(loader.ClientOptions{CAFile: cert})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, trusting, "https://"+serving.addr+"/"+a.Path, http.StatusOK)
	if got := status(t, "http://"+serving.addr+"/"+a.Path); got != http.StatusBadRequest {
		t.Errorf("plain HTTP is answered with %d", got)
	}
	if answer, err := http.DefaultClient.Get("https://" + serving.addr + "/" + a.Path); err == nil { //nolint:noctx // must fail
		_ = answer.Body.Close()
		t.Error("a client trusts the certificate that does not know it")
	}
	issue(t, cert, key, 2)
	trusting.CloseIdleConnections()
	eventually(t, trusting, "https://"+serving.addr+"/"+a.Path, http.StatusOK)
	if got := serial(t, serving.addr); got != 2 {
		t.Errorf("certificate %d is in use, want the new one", got)
	}
}

// serial waits for the second certificate, and returns which one a server has.
func serial(t *testing.T, addr string) (number int64) {
	t.Helper()
	_ = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		number = presented(t, addr)
		return number == 2, nil
	})
	return number
}

// presented is the serial number of the certificate that a server presents.
func presented(t *testing.T, addr string) int64 {
	t.Helper()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // looks at the certificate only
	conn, err := dialer.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64() //nolint:errcheck,forcetypeassert // of a TLS dialer
}

// issue writes a self-signed certificate and its key.
func issue(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
	replace(t, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public}))
}

// replace writes a file as a whole.
func replace(t *testing.T, file string, content []byte) {
	t.Helper()
	beside := fmt.Sprintf("%s.%d", file, time.Now().UnixNano())
	if err := os.WriteFile(beside, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(beside, file); err != nil {
		t.Fatal(err)
	}
}

// check validates options like the first part of Setup.
func check(o ServerOptions) error {
	_, err := o.readers(nil)
	_, failed := o.scheme()
	return errors.Join(err, failed)
}

// Contradictory options end the process with a message that names them.
func TestWrongOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*ServerOptions)
		says   string
	}{
		"auth":     {"a misspelt value must not stand for off", func(o *ServerOptions) { o.Auth = "tokens" }, `--artifact-auth is "tokens": want off or token`},
		"case":     {"nor one in capitals", func(o *ServerOptions) { o.Auth = "Token" }, `--artifact-auth is "Token"`},
		"audience": {"any token of the cluster would do", func(o *ServerOptions) { o.Auth, o.AuthAudience = AuthToken, "" }, "--artifact-audience is empty"},
		"no key":   {"half of TLS is none", func(o *ServerOptions) { o.TLSCert = "tls.crt" }, "--storage-tls-cert and --storage-tls-key go together"},
		"no cert":  {"nor the other half", func(o *ServerOptions) { o.TLSKey = "tls.key" }, "--storage-tls-cert and --storage-tls-key go together"},
	} {
		given := ServerOptions{}
		tc.change(&given)
		if err := check(given); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
	for _, auth := range []string{"", AuthOff, AuthToken} {
		given := ServerOptions{}
		given.Auth, given.AuthAudience = auth, "satchel-artifacts"
		if err := check(given); err != nil {
			t.Errorf("%q: %v", auth, err)
		}
	}
}
