// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig, with all data inline, for the user with the named certificate.
func (p Dir) WriteKubeconfig(path, server, user string) error {
	config := clientcmdapi.NewConfig()
	cluster := &clientcmdapi.Cluster{Server: server}
	auth := &clientcmdapi.AuthInfo{}
	for file, data := range map[string]*[]byte{
		p.Cert(ClusterCA): &cluster.CertificateAuthorityData,
		p.Cert(user):      &auth.ClientCertificateData,
		p.Key(user):       &auth.ClientKeyData,
	} {
		read, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
		}
		*data = read
	}
	const name = "satchel"
	config.Clusters[name] = cluster
	config.AuthInfos[user] = auth
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return nil
}
