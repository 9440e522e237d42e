// SPDX-License-Identifier: Apache-2.0

package sourcefetch

import (
	"context"
	nethttp "net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/configmap"
	"github.com/satchel-dev/satchel/internal/fetch/git"
	"github.com/satchel-dev/satchel/internal/fetch/helm"
	"github.com/satchel-dev/satchel/internal/fetch/http"
	"github.com/satchel-dev/satchel/internal/sourcefetch/credentials"
)

func (a *Adapters) fetcher(ctx context.Context, source v1alpha1.Source, previous fetch.Resolved) (fetch.Fetcher, error) {
	switch {
	case source.Image != nil:
		return a.imageFetcher(ctx, source.Image)
	case source.Git != nil:
		return a.gitFetcher(ctx, source.Git)
	case source.HTTP != nil:
		return a.httpFetcher(ctx, source.HTTP)
	case source.Helm != nil:
		return a.helmFetcher(ctx, source.Helm, previous)
	case source.ConfigMap != nil:
		return configMapFetcher(ctx, a.secrets, source.ConfigMap.Name)
	case source.Upload != nil:
		return uploaded{source.Upload.Digest}, nil
	}
	return nil, fetch.Errorf(fetch.Refused, "the source at destination %q names none of image, git, http, helm, configMap and upload: add exactly one", source.Destination)
}

func (a *Adapters) gitFetcher(ctx context.Context, spec *v1alpha1.GitSource) (fetch.Fetcher, error) {
	ref := spec.Ref
	if ref == nil {
		ref = &v1alpha1.GitRef{}
	}
	o := git.Options{
		URL: spec.URL, Branch: ref.Branch, Tag: ref.Tag, SemVer: ref.Version, Name: ref.Name, Commit: ref.Commit,
		Directory: spec.Path, Submodules: spec.RecurseSubmodules, Client: a.http, Limits: a.options.Limits,
	}
	err := a.gitAccess(ctx, spec, &o)
	if err == nil {
		o.Verify, err = credentials.GitVerification(ctx, a.secrets, spec.Verify)
	}
	if err != nil {
		return nil, err
	}
	if o.Verify != nil {
		o.Verify.Observe = func(took time.Duration, err error) { a.observe(Verifying, "git", took, err) }
	}
	return git.New(o)
}

// gitAccess adds the credentials in the Secrets of a repository: a login or key, and a
// client with certificates and a proxy.
func (a *Adapters) gitAccess(ctx context.Context, spec *v1alpha1.GitSource, o *git.Options) error {
	certificates := spec.SecretRef
	if spec.SecretRef != nil {
		secret, err := a.secrets.Get(ctx, spec.SecretRef.Name)
		if err != nil {
			return err
		}
		if err := credentials.GitCredentials(secret, spec, o); err != nil {
			return err
		}
		if !credentials.HasCertificates(secret) {
			certificates = nil
		}
	}
	if o.App != nil {
		o.App.Tokens = a.tokens
	}
	if o.SSH != nil {
		through, err := credentials.Access(ctx, a.secrets, "", nil, spec.ProxySecretRef)
		o.Dial = a.options.Policy.Dialer(through)
		return err
	}
	parsed, err := fetch.ParseURL(spec.URL)
	if err != nil {
		return fetch.Describe(err, "git repository")
	}
	o.Client, err = a.client(ctx, parsed.Host, certificates, spec.ProxySecretRef)
	return err
}

func (a *Adapters) httpFetcher(ctx context.Context, spec *v1alpha1.HTTPSource) (fetch.Fetcher, error) {
	parsed, err := fetch.ParseURL(spec.URL)
	if err != nil {
		return nil, fetch.Describe(err, "archive")
	}
	o := http.Options{URL: spec.URL, Digest: spec.Digest, Limits: a.options.Limits}
	if o.Login, err = credentials.Login(ctx, a.secrets, spec.SecretRef); err != nil {
		return nil, err
	}
	if o.Client, err = a.client(ctx, parsed.Host, spec.CertSecretRef, spec.ProxySecretRef); err != nil {
		return nil, err
	}
	if v := spec.Verify; v != nil {
		o.Signature = v.SignatureURL
		verify, err := credentials.ArchiveVerifier(ctx, a.secrets, v)
		if err != nil {
			return nil, err
		}
		o.Verify = measuredArchives{verify, a.observe}
	}
	return http.New(o)
}

func (a *Adapters) helmFetcher(ctx context.Context, spec *v1alpha1.HelmSource, previous fetch.Resolved) (fetch.Fetcher, error) {
	o := helm.Options{
		Repository: spec.URL, Chart: spec.Chart, Version: spec.Version, Digest: spec.Digest, PassCredentials: spec.PassCredentials,
		Client: a.http, Limits: a.options.Limits, Previous: previous,
	}
	parsed, err := fetch.ParseURL(spec.URL)
	if err != nil {
		return nil, fetch.Describe(err, "Helm repository")
	}
	if o.Login, err = credentials.Login(ctx, a.secrets, spec.SecretRef); err != nil {
		return nil, err
	}
	if o.Client, err = a.client(ctx, parsed.Host, spec.CertSecretRef, spec.ProxySecretRef); err != nil {
		return nil, err
	}
	return helm.New(o)
}

// client returns the client of a source: the shared one, or its own if the source has
// certificates or a proxy. Connections of its own end with the reconcile, so that none
// outlives the credentials that opened it.
func (a *Adapters) client(ctx context.Context, server string, certificates, proxy *v1alpha1.LocalReference) (*nethttp.Client, error) {
	if certificates == nil && proxy == nil {
		return a.http, nil
	}
	access, err := credentials.Access(ctx, a.secrets, server, certificates, proxy)
	if err != nil {
		return nil, err
	}
	return a.clientWith(access), nil
}

func configMapFetcher(ctx context.Context, s *credentials.Secrets, name string) (fetch.Fetcher, error) {
	var object corev1.ConfigMap
	found, err := s.Load(ctx, "ConfigMap", name, &object)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fetch.Errorf(fetch.NotFound, "configmap %s/%s does not exist: create it, or correct the name in the source", s.Namespace, name)
	}
	return configmap.New(configmap.Options{Name: s.Namespace + "/" + name, Data: object.Data, BinaryData: object.BinaryData})
}
