module github.com/causeway-mesh/causeway/test/tools/kubernetes/pause

go 1.26.0
