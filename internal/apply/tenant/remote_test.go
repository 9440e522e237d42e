// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/connection"
)

// secured makes the small API server serve TLS, and returns a kubeconfig for it.
func secured(t *testing.T, s *server, token string) *tenant.Kubeconfig {
	t.Helper()
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return kubeconfigOf(t, s.Server, token)
}

func kubeconfigOf(t *testing.T, s *httptest.Server, token string) *tenant.Kubeconfig {
	t.Helper()
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	parsed, err := tenant.ParseKubeconfig([]byte(kubeconfig(`server: "`+s.URL+`", certificate-authority-data: `+authority, "token: "+token)))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func dialAnywhere(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

func remoteClient(t *testing.T, remotes *tenant.Remotes, of *tenant.Kubeconfig, namespace, account string) *tenant.Client {
	t.Helper()
	client, err := remotes.Client(of, namespace, account)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// On a remote cluster everything, including discovery and reading the identity of the cluster, is
// done as the account, or as the user of the kubeconfig.
func TestT7RemoteRequestsAreTheAccounts(t *testing.T) {
	for account, user := range map[string]string{"installer": " system:serviceaccount:shop:installer", "": ""} {
		s := &server{kinds: []string{"ConfigMap"}}
		client := remoteClient(t, tenant.NewRemotes(dialAnywhere, tenant.Options{}), secured(t, s, "a"), "shop", account)
		if _, err := client.Kinds().Find(t.Context(), configMap); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Metadata(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		if uid, err := client.Target(t.Context()); err != nil || uid != "uid-of-system" {
			t.Errorf("got %q, %v", uid, err)
		}
		for _, request := range s.seen("") {
			if method, rest, _ := strings.Cut(request, " "); method != "GET" || !strings.HasSuffix(rest, user) || user == "" && strings.Contains(rest, " ") {
				t.Errorf("not as %q: %s", account, request)
			}
		}
	}
}

// Each client serves one namespace, kubeconfig and account.
func TestS7RemoteClientsAreKeptApart(t *testing.T) {
	s := &server{}
	first := secured(t, s, "a")
	remotes := tenant.NewRemotes(dialAnywhere, tenant.Options{})
	kept := remoteClient(t, remotes, first, "shop", "installer")
	if remoteClient(t, remotes, kubeconfigOf(t, s.Server, "a"), "shop", "installer") != kept {
		t.Error("the client is not kept")
	}
	others := map[string]*tenant.Client{
		"another token":     remoteClient(t, remotes, kubeconfigOf(t, s.Server, "b"), "shop", "installer"),
		"another namespace": remoteClient(t, remotes, first, "other", "installer"),
		"another account":   remoteClient(t, remotes, first, "shop", "other"),
		"no account":        remoteClient(t, remotes, first, "shop", ""),
	}
	for what, other := range others {
		if other == kept || other.Identity() == kept.Identity() || other.Kinds() == kept.Kinds() {
			t.Errorf("%s: the same client", what)
		}
	}
	for _, account := range []string{"x:y", "../b", "a\nb", "system:masters", "A"} {
		if client, err := remotes.Client(first, "shop", account); err == nil {
			t.Errorf("a client for %q", client.Identity())
		}
	}
	pool, err := tenant.NewPool(s.config(), tenant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Client(kept.Identity()); err == nil {
		t.Error("an account of a remote cluster was taken for one of this")
	}
}

// A server that does not answer costs one try now and then, for any number of callers.
func TestS7DeadClusterCostsLittle(t *testing.T) {
	s := &server{}
	of := secured(t, s, "a")
	now, tries, dead := time.Unix(0, 0), 0, atomic.Bool{}
	dead.Store(true)
	remotes := tenant.NewRemotes(func(ctx context.Context, network, address string) (net.Conn, error) {
		tries++
		if dead.Load() {
			return nil, &net.OpError{Op: "dial", Err: errors.New("the address is denied")}
		}
		return dialAnywhere(ctx, network, address)
	}, tenant.Options{Now: func() time.Time { return now }})
	ask := func(account string) error {
		_, err := remoteClient(t, remotes, of, "shop", account).Target(t.Context())
		return err
	}
	for i := range 20 {
		var unreachable *connection.UnreachableError
		if err := ask(fmt.Sprint("account-", i)); !errors.As(err, &unreachable) || unreachable.Host != of.Host() || !strings.Contains(err.Error(), "the address is denied") {
			t.Fatalf("got %v", err)
		}
	}
	if tries != 1 {
		t.Errorf("%d connections were tried, want one for all", tries)
	}
	now = now.Add(3 * time.Second)
	_, _ = ask("a"), ask("b")
	if tries != 2 {
		t.Errorf("%d connections were tried, want one more after the pause", tries)
	}
	dead.Store(false)
	if err := ask("a"); err == nil {
		t.Error("the pause is not longer after two failures")
	}
	now = now.Add(time.Minute)
	if err := errors.Join(ask("a"), ask("b")); err != nil {
		t.Errorf("after it came back: %v", err)
	}
}

// The credentials do not follow a redirect.
func TestT9RedirectsAreNotFollowed(t *testing.T) {
	reached := atomic.Bool{}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(elsewhere.Close)
	server := httptest.NewTLSServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	client := remoteClient(t, tenant.NewRemotes(dialAnywhere, tenant.Options{}), kubeconfigOf(t, server, "a"), "shop", "")
	if _, err := client.Target(t.Context()); err == nil || reached.Load() {
		t.Errorf("followed: %v (%v)", reached.Load(), err)
	}
}

// The cause of a failed connection is described in words, the same each time.
func TestUnreachableSaysWhy(t *testing.T) {
	otherServer := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(otherServer.Close)
	closed := httptest.NewTLSServer(http.NotFoundHandler())
	closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	tests := map[string]struct{ url, want string }{
		"no listener":         {closed.URL, "connection refused"},
		"another certificate": {otherServer.URL, "certificate signed by unknown authority"},
		"no answer":           {"https://" + silent.Addr().String(), "no answer in time"},
		"no such host":        {"https://does-not-exist.invalid", "the address of its host could not be found"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			of, err := tenant.ParseKubeconfig([]byte(kubeconfig(`server: "`+tc.url+`"`, aToken)))
			if err != nil {
				t.Fatal(err)
			}
			client := remoteClient(t, tenant.NewRemotes(dialAnywhere, tenant.Options{RequestTimeout: time.Second}), of, "shop", "")
			_, err = client.Target(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), of.Host()) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
