// Package clientgo lets clients made with client-go get their credentials through execcredential.
//
// In goes a rest.Config with an ExecProvider, as clientcmd makes one of a kubeconfig; out comes one without, that does the same and
// presents the same credentials. Everything that takes a rest.Config works with it: clientsets, informers, dynamic clients,
// controller-runtime, and the upgrades of exec, attach and port-forward. The rest.Config that goes in is not changed, and client-go's
// own plugin never runs for the one that comes out.
//
//	var metrics clientgo.Metrics
//	pool, err := execcredential.NewPool(execcredential.Options{OnRun: metrics.Run})
//	…
//	defer pool.Close()
//	config, err = clientgo.Config(pool, config)
package clientgo
