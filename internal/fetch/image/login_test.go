// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/auth/token"
	"golang.org/x/crypto/bcrypt"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image/registryauth"
)

const (
	user     = "reader"
	password = "CANARY-password:with-colon"
	identity = "CANARY-identity"
)

// tokens is a token server that speaks Docker's protocol, with both ways to log in.
type tokens struct {
	*upstream
	key *ecdsa.PrivateKey

	mutex sync.Mutex
	seen  []string // the login of each request, and the scope
}

func newTokens(t testing.TB) *tokens {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	server := &tokens{key: key}
	server.upstream = serve(t, server)
	return server
}

// ServeHTTP implements http.Handler.
func (s *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, secret, _ := r.BasicAuth()
	ok := name == user && secret == password
	if r.Method == http.MethodPost {
		name, secret = "token", r.PostFormValue("refresh_token")
		ok = secret == identity && r.PostFormValue("grant_type") == "refresh_token" && r.PostFormValue("client_id") != ""
	}
	s.mutex.Lock()
	s.seen = append(s.seen, name+"|"+secret+"|"+r.FormValue("scope"))
	s.mutex.Unlock()
	if !ok || r.FormValue("service") != "registry" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": s.issue(r.Form["scope"]), "expires_in": 60})
}

func (s *tokens) logins() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.seen)
}

// issue writes a token for scopes as "repository:name:pull".
func (s *tokens) issue(scopes []string) string {
	var access []map[string]any
	for _, scope := range strings.Fields(strings.Join(scopes, " ")) {
		parts := strings.Split(scope, ":")
		access = append(access, map[string]any{"type": parts[0], "name": parts[1], "actions": strings.Split(parts[2], ",")})
	}
	now := time.Now().Unix()
	part := func(what any) string {
		data, err := json.Marshal(what)
		if err != nil {
			panic(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	text := part(map[string]string{"typ": "JWT", "alg": "ES256", "kid": "test"}) + "." + part(map[string]any{
		"iss": "tokens", "sub": user, "aud": "registry", "nbf": now - 10, "iat": now, "exp": now + 60, "access": access,
	})
	sum := sha256.Sum256([]byte(text))
	a, b, err := ecdsa.Sign(rand.Reader, s.key, sum[:])
	if err != nil {
		panic(err)
	}
	signature := append(a.FillBytes(make([]byte, 32)), b.FillBytes(make([]byte, 32))...)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// keys is the file by which the registry knows the token server.
func (s *tokens) keys(t testing.TB) string {
	t.Helper()
	public, err := s.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	data := fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256","kid":"test","alg":"ES256","use":"sig","x":%q,"y":%q}]}`,
		base64.RawURLEncoding.EncodeToString(public[1:33]), base64.RawURLEncoding.EncodeToString(public[33:]))
	return write(t, "keys.json", data)
}

func write(t testing.TB, name, data string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// filled returns the folder of a registry that has the repository org/b.
func filled(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	open := serve(t, distribution(folder, nil))
	push(t, open.host+"/org/b:v1", imageOf(t, layer(t, "a", "1")))
	return folder
}

// behindTokens is a registry with a separate token server.
func behindTokens(t testing.TB) (*upstream, *tokens) {
	t.Helper()
	server := newTokens(t)
	return serve(t, distribution(filled(t), configuration.Auth{"token": configuration.Parameters{
		"realm": server.URL + "/token", "issuer": "tokens", "service": "registry", "jwks": server.keys(t),
	}})), server
}

// behindPassword is a registry that wants user name and password itself.
func behindPassword(t testing.TB) *upstream {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, distribution(filled(t), configuration.Auth{"htpasswd": configuration.Parameters{
		"realm": "test", "path": write(t, "htpasswd", user+":"+string(hash)+"\n"),
	}}))
}

// host of the token server, which has a port of its own.
func (s *tokens) host() string { return strings.TrimPrefix(s.URL, "http://") }

// one is a keychain with one login for one host.
func one(host string, login fetch.Login) registryauth.Keychain {
	return registryauth.KeychainFunc(func(_ context.Context, asked, _ string) (fetch.Login, bool, error) {
		return login, asked == host, nil
	})
}

func TestF16Logins(t *testing.T) {
	guarded, server := behindTokens(t)
	registries := map[string]*upstream{"Token": guarded, "Basic": behindPassword(t)}
	registryToken := server.issue([]string{"repository:org/b:pull"})
	cases := map[string]struct {
		reason   string
		registry string
		login    fetch.Login
		ok       bool
	}{
		"Basic":            {"the registry asks for it", "Basic", fetch.Login{Username: user, Password: password}, true},
		"BasicWrong":       {"another password", "Basic", fetch.Login{Username: user, Password: "CANARY-old"}, false},
		"BasicNone":        {"no login", "Basic", fetch.Login{}, false},
		"BasicIdentity":    {"identity tokens are for token servers", "Basic", fetch.Login{Username: registryauth.IdentityToken, Password: identity}, false},
		"Token":            {"exchanged at the token server", "Token", fetch.Login{Username: user, Password: password}, true},
		"TokenWrong":       {"refused at the token server", "Token", fetch.Login{Username: user, Password: "CANARY-old"}, false},
		"TokenNone":        {"no login", "Token", fetch.Login{}, false},
		"Identity":         {"exchanged by OAuth2", "Token", fetch.Login{Username: registryauth.IdentityToken, Password: identity}, true},
		"IdentityWrong":    {"revoked", "Token", fetch.Login{Username: registryauth.IdentityToken, Password: "CANARY-old"}, false},
		"RegistryToken":    {"sent as it is", "Token", fetch.Login{Token: registryToken}, true},
		"RegistryTokenOld": {"no other way", "Token", fetch.Login{Token: "CANARY-old"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := registries[tc.registry]
			o := options(u.host + "/org/b:v1")
			o.Keychain = registryauth.Keychains(one(u.host, tc.login), one(server.host(), tc.login))
			hint := "check the login"
			if tc.login.Empty() {
				hint = "add a login for this registry to the pull secret"
				o.Keychain = one("elsewhere", fetch.Login{Username: user, Password: password})
			}
			_, files, err := pull(t, o)
			if tc.ok && (err != nil || files["a"] != "1") {
				t.Errorf("%s: %v, %v", tc.reason, files, err)
			}
			if !tc.ok && (fetch.ReasonOf(err) != fetch.Unauthorized || strings.Contains(err.Error(), "CANARY") ||
				!strings.Contains(err.Error(), hint)) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	for _, login := range server.logins() {
		if !strings.HasSuffix(login, "|repository:org/b:pull") {
			t.Errorf("asked for more than to pull: %s", login)
		}
	}
}

func TestF16Requests(t *testing.T) {
	guarded, server := behindTokens(t)
	o := options(guarded.host + "/org/b:v1")
	login := fetch.Login{Username: user, Password: password}
	o.Keychain = registryauth.Keychains(one(guarded.host, login), one(server.host(), login))
	resolved, _, err := pull(t, o)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"GET /v2/", "HEAD /v2/org/b/manifests/v1", "GET /v2/org/b/manifests/" + resolved.Digest,
	}
	got := guarded.seen()
	if len(got) != 4 || !slices.Equal(got[:3], want) || len(server.logins()) != 1 {
		t.Errorf("more requests than needed: %q and %d for tokens", got, len(server.logins()))
	}
}

func TestF16TokenExpiresBetweenLayers(t *testing.T) {
	u := small(t)
	push(t, u.host+"/b:v1", imageOf(t, layer(t, "a", "1"), layer(t, "b", "2"), layer(t, "c", "3")))
	var mutex sync.Mutex
	issued, uses := 0, 0
	guarded := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		if r.URL.Path == "/token" {
			issued, uses = issued+1, 0
			_ = json.NewEncoder(w).Encode(map[string]string{"token": fmt.Sprintf("t%d", issued)})
			return
		}
		if uses++; uses > 2 || r.Header.Get("Authorization") != fmt.Sprintf("Bearer t%d", issued) {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q", "http://"+r.Host+"/token"))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		u.Config.Handler.ServeHTTP(w, r)
	}))
	_, files, err := pull(t, options(guarded.host+"/b:v1"))
	if err != nil || len(files) != 3 || issued < 2 {
		t.Errorf("%v, %v, with %d tokens", files, err, issued)
	}
}

func TestF16HiddenFromUnauthenticatedClients(t *testing.T) {
	u := small(t)
	push(t, u.host+"/b:v1", imageOf(t, layer(t, "a", "1")))
	guarded := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, secret, _ := r.BasicAuth()
		switch {
		case secret == password:
			u.Config.Handler.ServeHTTP(w, r)
		case r.URL.Path == "/v2/":
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	o := options(guarded.host + "/b:v1")
	o.Keychain = one(guarded.host, fetch.Login{Username: user, Password: password})
	if _, _, err := pull(t, o); err != nil {
		t.Error(err)
	}
}

func TestF16RotatedLogin(t *testing.T) {
	u := small(t)
	push(t, u.host+"/b:v1", imageOf(t, layer(t, "a", "1")))
	var valid atomic.Value
	valid.Store("CANARY-old")
	guarded := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, secret, _ := r.BasicAuth(); secret != valid.Load() {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		u.Config.Handler.ServeHTTP(w, r)
	}))
	o := options(guarded.host + "/b:v1") // one client throughout, with its connections
	with := func(secret string) error {
		o.Keychain = one(guarded.host, fetch.Login{Username: user, Password: secret})
		_, _, err := pull(t, o)
		return err
	}
	if err := with("CANARY-old"); err != nil {
		t.Fatal(err)
	}
	valid.Store("CANARY-new")
	if err := with("CANARY-old"); fetch.ReasonOf(err) != fetch.Unauthorized || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("the old login: %v", err)
	}
	if err := with("CANARY-new"); err != nil {
		t.Errorf("the new login: %v", err)
	}
}
