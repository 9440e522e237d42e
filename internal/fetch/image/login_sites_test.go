// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image/registryauth"
)

// Public names: the registry and its token server belong to one owner, the third server to another.
const (
	registryName = "registry.acme-images.com"
	sameOwner    = "auth.acme-images.com"
	otherOwner   = "auth.evil-images.com"
)

// publicServers serves the names over TLS, and returns a client for which they are public hosts.
func publicServers(t *testing.T, handler http.HandlerFunc) *http.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{registryName, sameOwner, otherOwner}, IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)
	parsed, err := x509.ParseCertificate(certificate)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// TestM12LoginStaysWithItsOwner: a registry names a token server. One under the same registrable domain gets the login, one
// under another domain does not, over valid TLS and with every kind of login. Libraries that trust every https realm fail here.
func TestM12LoginStaysWithItsOwner(t *testing.T) {
	logins := map[string]fetch.Login{
		"password": {Username: user, Password: password}, "identity token": {Username: registryauth.IdentityToken, Password: identity},
	}
	for kind, login := range logins {
		for realm, want := range map[string]bool{sameOwner: true, otherOwner: false} {
			t.Run(kind+" to "+realm, func(t *testing.T) {
				var mutex sync.Mutex
				heard := map[string]string{}
				client := publicServers(t, func(w http.ResponseWriter, r *http.Request) {
					_, secret, _ := r.BasicAuth()
					all := secret + r.Header.Get("Authorization") + r.URL.RawQuery + r.FormValue("refresh_token") + r.FormValue("password")
					mutex.Lock()
					heard[r.Host] += all
					mutex.Unlock()
					switch {
					case r.URL.Path == "/token":
						give(w, r)
					case r.Header.Get("Authorization") == "Bearer CANARY-token":
						w.WriteHeader(http.StatusNotFound)
					default:
						w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=%q", "https://"+realm+"/token", "registry"))
						w.WriteHeader(http.StatusUnauthorized)
					}
				})
				_, _, err := pull(t, Options{Ref: registryName + "/b:v1", Client: client, Limits: fetch.DefaultLimits(), Keychain: one(registryName, login)})
				mutex.Lock()
				defer mutex.Unlock()
				if got := strings.Contains(heard[realm], login.Password); got != want {
					t.Errorf("the token server heard the login: %t, want %t (%v)", got, want, err)
				}
				if want && fetch.ReasonOf(err) != fetch.NotFound || !want && fetch.ReasonOf(err) != fetch.Unauthorized {
					t.Errorf("unexpected end: %v", err)
				}
				if err != nil && strings.Contains(err.Error(), "CANARY") {
					t.Errorf("the error has a secret: %v", err)
				}
			})
		}
	}
}
