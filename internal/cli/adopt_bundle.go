// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/artifact"
	"github.com/satchel-dev/satchel/internal/spec"
)

// published converts what the source of a deployment publishes, as the controller does.
func (a *app) published(ctx context.Context, c *cluster, d *v1alpha1.BundleDeployment) (result convert.Result, err error) {
	files, closed, err := a.openPublished(ctx, c, d)
	if err != nil {
		return convert.Result{}, err
	}
	defer func() { err = errors.Join(err, closed()) }()
	result, err = convert.Convert(files, spec.Conversion(d, convert.Limits{}))
	if err != nil {
		return convert.Result{}, refused(err, false)
	}
	return result, nil
}

// openPublished loads the artifact of a deployment's BundleSource, whose digest is checked.
func (a *app) openPublished(ctx context.Context, c *cluster, d *v1alpha1.BundleDeployment) (fs.FS, func() error, error) {
	source, err := c.publishedSource(ctx, d)
	if err != nil {
		return nil, nil, err
	}
	owner := artifact.SourceOwner(source.Namespace, source.Name)
	server, _, found := strings.Cut(source.Status.Artifact.URL, "/"+strings.SplitN(owner.String(), "/", 2)[0]+"/")
	if !found {
		return nil, nil, fmt.Errorf("the artifact of %s has an address that is not that of a BundleSource: %s", owner, source.Status.Artifact.URL)
	}
	client, err := a.artifactClient(source.Status.Artifact.URL)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "satchel-")
	if err != nil {
		return nil, nil, fmt.Errorf("creating a temporary folder: %w", err)
	}
	loader, err := artifact.NewLoader(artifact.LoaderOptions{Client: client, ServerURLs: []string{server}, CacheDir: dir, Limits: fetch.DefaultLimits()})
	if err == nil {
		var content *artifact.Content
		if content, err = loader.Load(ctx, owner, *source.Status.Artifact); err == nil {
			return content.FS(), func() error { return errors.Join(content.Close(), os.RemoveAll(dir)) }, nil
		}
	}
	// Not wrapped: what fails here is not the cluster.
	text := fmt.Sprintf("the artifact of %s cannot be loaded: %s", owner, err.Error())
	return nil, nil, errors.Join(errors.New(text), os.RemoveAll(dir))
}

// publishedSource is the BundleSource of a deployment, with an artifact.
func (c *cluster) publishedSource(ctx context.Context, d *v1alpha1.BundleDeployment) (*v1alpha1.BundleSource, error) {
	if d.SourceName() == "" {
		return nil, fmt.Errorf("the source of %s %s is %s, which Flux fetches, and this command reads BundleSources", deployments.name, d.Name, d.SourceText())
	}
	found, err := c.get(ctx, target{kind: sources, name: d.SourceName()})
	if err != nil {
		return nil, err
	}
	source, ok := found.(*v1alpha1.BundleSource)
	if !ok || source.Status.Artifact == nil || source.Status.SourcesDigest != source.Spec.SourcesDigest() {
		return nil, fmt.Errorf("the %s %q has not been fetched yet: the command get source %s says why", sources.name, d.SourceName(), d.SourceName())
	}
	return source, nil
}

// artifactClient reaches an artifact server: a Service of the cluster by the API server's proxy, anything else directly, by
// plain HTTP too, for what comes is checked against a digest that the cluster says.
func (a *app) artifactClient(address string) (*http.Client, error) {
	server, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the artifact: %w", err)
	}
	config, err := a.restConfig()
	if err != nil {
		return nil, err
	}
	through, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	direct := localPolicy([]string{server.Hostname(), server.Host}).HTTPClient(fetch.DefaultLimits()).Transport
	return &http.Client{Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
		path, ofCluster := servicePath(request.URL)
		if !ofCluster {
			return direct.RoundTrip(request)
		}
		request = request.Clone(request.Context())
		request.URL, request.Host = base.JoinPath(path), ""
		return through.Transport.RoundTrip(request)
	})}, nil
}

// servicePath is where the API server passes requests on to a Service, whose address is NAME.NAMESPACE.svc.
func servicePath(address *url.URL) (string, bool) {
	host, port, err := net.SplitHostPort(address.Host)
	if err != nil {
		host, port = address.Host, ""
	}
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) < 3 || parts[2] != "svc" {
		return "", false
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[address.Scheme]
	}
	return fmt.Sprintf("/api/v1/namespaces/%s/services/%s:%s:%s/proxy%s",
		url.PathEscape(parts[1]), address.Scheme, url.PathEscape(parts[0]), url.PathEscape(port), address.EscapedPath()), true
}
