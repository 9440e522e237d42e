// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/links"
	"github.com/satchel-dev/satchel/internal/view"
)

// OpenArtifact loads an artifact of a source with the user's permissions: where its server is a Service of the cluster through
// the API server, else directly. Its digest is checked. What is kept on the disk is gone after close.
func OpenArtifact(ctx context.Context, a *kit.App, config *rest.Config, owner artifact.Owner, of meta.Artifact) (b *Bundle, err error) {
	server, err := url.Parse(of.URL)
	if err != nil || server.Host == "" {
		return nil, fmt.Errorf("the artifact of %s has the URL %.200q, which cannot be read: reconcile the source", owner, of.URL)
	}
	client, err := ArtifactClient(config, server)
	if err != nil {
		return nil, err
	}
	progress := printer.NewProgress(a.Streams.ErrOut, "Downloading the artifact of "+view.Inline(owner.String()))
	client.Transport = progress.Count(client.Transport)
	defer progress.Done()
	dir, err := os.MkdirTemp("", "satchel-")
	if err != nil {
		return nil, fmt.Errorf("creating a temporary folder: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	base := server.Scheme + "://" + server.Host
	loader, err := loader.New(loader.Options{
		Client: client, ServerURLs: []string{base}, FluxServerURLs: []string{base}, CacheDir: dir, Limits: fetch.DefaultLimits(),
	})
	if err != nil {
		return nil, err
	}
	content, err := loader.Load(ctx, owner, of)
	if err != nil {
		return nil, explainDownload(err)
	}
	return &Bundle{
		Files: content.FS(),
		From:  fmt.Sprintf("revision %s of %s", of.Revision, owner),
		Close: func() error { return errors.Join(content.Close(), os.RemoveAll(dir)) },
		Notes: links.Notes(content.FS()),
	}, nil
}

// ErrTokensRequired is the answer of an artifact server that requires tokens.
var ErrTokensRequired = errors.New("the artifact server accepts only tokens of ServiceAccounts (--artifact-auth=token), and the API server forwards none: " +
	"forward its port, and send a token of a ServiceAccount of the namespace; see the page BundleSource, who may read")

// explainDownload says what a user can do about a download that failed; the words of the loader are those of the controller.
func explainDownload(err error) error {
	switch fetch.ReasonOf(err) {
	case fetch.Unauthorized:
		return ErrTokensRequired
	case fetch.Unreachable, fetch.Timeout:
		return &ArtifactError{Err: err}
	}
	return err
}

// inCluster matches the host of a Service: NAME.NAMESPACE.svc, with or without the domain of the cluster.
var inCluster = regexp.MustCompile(`^([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)\.([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)\.svc(?:\.[a-z0-9.-]*)?$`)

// ArtifactClient reaches an artifact server.
func ArtifactClient(config *rest.Config, server *url.URL) (*http.Client, error) {
	service := inCluster.FindStringSubmatch(server.Hostname())
	if service == nil {
		return loader.NewClient(loader.ClientOptions{})
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	api, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	port := server.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[server.Scheme]
	}
	through := path.Join("/", api.Path, "api/v1/namespaces", service[2], "services", fmt.Sprintf("%s:%s:%s", server.Scheme, service[1], port), "proxy")
	return &http.Client{Transport: printer.RoundTripper(func(request *http.Request) (*http.Response, error) {
		proxied := request.Clone(request.Context())
		proxied.URL, proxied.Host = &url.URL{Scheme: api.Scheme, Host: api.Host, Path: through + request.URL.Path, RawQuery: request.URL.RawQuery}, ""
		response, err := transport.RoundTrip(proxied)
		if err != nil {
			return nil, err
		}
		if err := refusedByAPI(response, service[1], service[2]); err != nil {
			return nil, err
		}
		return response, nil
	})}, nil
}

// longestRefusal is how much is read of an answer that is no artifact.
const longestRefusal = 64 << 10

// refusedByAPI tells an answer of the API server itself from one of the server behind it.
func refusedByAPI(response *http.Response, name, namespace string) error {
	if response.StatusCode < http.StatusBadRequest || !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, longestRefusal))
	response.Body.Close() //nolint:errcheck // it was only read from
	response.Body = io.NopCloser(bytes.NewReader(body))
	var status struct{ Kind, Message string }
	if err != nil || json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		return nil
	}
	if response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("you may not reach the Service %s/%s through the API server, which needs permission to get services/proxy there (the cluster says: %s)",
			namespace, name, status.Message)
	}
	return fmt.Errorf("the API server cannot reach the Service %s/%s: %s", namespace, name, status.Message)
}
