// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/auth"
	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestT14HostsOfClouds(t *testing.T) {
	cases := map[string]struct {
		reason, provider, host string
		ok                     bool
	}{
		"ECR":            {"a registry of Amazon's", "aws", "123456789012.dkr.ecr.eu-west-1.amazonaws.com", true},
		"ECRFIPS":        {"one of its other names", "aws", "123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com", true},
		"ECRChina":       {"one of its other names", "aws", "123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn", true},
		"ECRDual":        {"one of its other names", "aws", "123456789012.dkr-ecr.eu-west-1.on.aws", true},
		"ECRPublic":      {"the public one", "aws", "public.ecr.aws", true},
		"ECRLonger":      {"another domain, which fluxcd/pkg/auth accepts", "aws", "123456789012.dkr.ecr.eu-west-1.amazonaws.com.evil.example", false},
		"ECRBefore":      {"another account", "aws", "evil.example.dkr.ecr.eu-west-1.amazonaws.com", false},
		"ECRPort":        {"another server", "aws", "123456789012.dkr.ecr.eu-west-1.amazonaws.com:8443", false},
		"ECRRegion":      {"another service of the cloud", "aws", "123456789012.dkr.ecr.x/y.amazonaws.com", false},
		"ACR":            {"a registry of Microsoft's", "azure", "example.azurecr.io", true},
		"ACRLonger":      {"another domain", "azure", "example.azurecr.io.evil.example", false},
		"ACRAlike":       {"another domain", "azure", "example.azurecrxio", false},
		"ACRNone":        {"no registry", "azure", "azurecr.io", false},
		"GCR":            {"a registry of Google's", "gcp", "eu.gcr.io", true},
		"GCRShort":       {"a registry of Google's", "gcp", "gcr.io", true},
		"GAR":            {"a registry of Google's", "gcp", "europe-west1-docker.pkg.dev", true},
		"GCRAlike":       {"another domain", "gcp", "evilgcr.io", false},
		"GARLonger":      {"another domain", "gcp", "europe-west1-docker.pkg.dev.evil.example", false},
		"GARUser":        {"another domain", "gcp", "europe-west1-docker.pkg.dev@evil.example", false},
		"Crossed":        {"of another cloud", "gcp", "example.azurecr.io", false},
		"Unknown":        {"no such cloud", "oracle", "gcr.io", false},
		"Generic":        {"that is no cloud", "generic", "gcr.io", false},
		"OtherRegistry":  {"belongs to none of them", "aws", "quay.io", false},
		"Newline":        {"no host", "gcp", "gcr.io\n", false},
		"Metadata":       {"no registry", "gcp", "169.254.169.254", false},
		"MetadataByName": {"no registry", "gcp", "metadata.google.internal", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := New().Keychain(tc.provider, tc.host); (err == nil) != tc.ok || err != nil && fetch.ReasonOf(err) != fetch.Refused {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// TestGoogleCloud logs in at a metadata service as Google's nodes have it.
func TestGoogleCloud(t *testing.T) {
	var asked atomic.Int32
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata-Flavor") != "Google" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Metadata-Flavor", "Google")
		if strings.HasSuffix(r.URL.Path, "/token") {
			asked.Add(1)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"CANARY","expires_in":3600,"token_type":"Bearer"}`)
		}
	}))
	t.Cleanup(metadata.Close)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(metadata.URL, "http://"))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("HOME", t.TempDir())

	logins, now := New(), time.Now()
	logins.now = func() time.Time { return now }
	keychain, err := logins.Keychain("gcp", "eu.gcr.io")
	if err != nil {
		t.Fatal(err)
	}
	want := fetch.Login{Username: "oauth2accesstoken", Password: "CANARY"}
	for range 3 {
		if login, found, err := keychain.Login(context.Background(), "eu.gcr.io", "a/b"); login != want || !found || err != nil {
			t.Fatalf("%v %v %v", login, found, err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the metadata service was asked %d times", n)
	}
	now = now.Add(maxAge)
	if _, _, err := keychain.Login(context.Background(), "eu.gcr.io", "a/b"); err != nil || asked.Load() != 2 {
		t.Errorf("the login is old: %v, asked %d times", err, asked.Load())
	}
	if login, found, err := keychain.Login(context.Background(), "gcr.io", ""); found || err != nil || !login.Empty() {
		t.Errorf("the login of another host was given out: %v", err)
	}
}

// fake is a cloud that gives no identity.
type fake struct {
	auth.ArtifactRegistryCredentialsProvider
	answer func() (*auth.ArtifactRegistryCredentials, error)
}

func (fake) GetName() string { return "fake" }

func (fake) ParseArtifactRepository(repository string) (string, error) { return repository, nil }

func (fake) GetAccessTokenOptionsForArtifactRepository(string) ([]auth.Option, error) {
	return nil, nil
}

func (fake) NewControllerToken(context.Context, ...auth.Option) (auth.Token, error) { return nil, nil }

func (f fake) NewArtifactRegistryCredentials(context.Context, string, auth.Token, ...auth.Option) (*auth.ArtifactRegistryCredentials, error) {
	return f.answer()
}

func TestLoginThatFails(t *testing.T) {
	logins := New()
	answer := func() (*auth.ArtifactRegistryCredentials, error) {
		return nil, errors.New("no identity\n" + strings.Repeat("x", 5000))
	}
	logins.providers = map[string]provider{"fake": {
		hosts: providers["gcp"].hosts,
		auth:  fake{answer: func() (*auth.ArtifactRegistryCredentials, error) { return answer() }},
	}}
	keychain, err := logins.Keychain("fake", "gcr.io")
	if err != nil {
		t.Fatal(err)
	}
	_, found, err := keychain.Login(context.Background(), "gcr.io", "b")
	if found || fetch.ReasonOf(err) != fetch.Unauthorized || len(err.Error()) > 600 || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v %v", found, err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := keychain.Login(cancelled, "gcr.io", "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	asked := 0
	answer = func() (*auth.ArtifactRegistryCredentials, error) {
		asked++
		return &auth.ArtifactRegistryCredentials{
			Authenticator: authn.FromConfig(authn.AuthConfig{Username: "u", Password: "p"}), ExpiresAt: time.Now().Add(-time.Minute),
		}, nil
	}
	for range 2 {
		if login, _, err := keychain.Login(context.Background(), "gcr.io", "b"); err != nil || login.Password != "p" {
			t.Errorf("%v", err)
		}
	}
	if asked != 2 {
		t.Error("a login that is over is used again")
	}
}
