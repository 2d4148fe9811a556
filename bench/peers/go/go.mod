module carillon/bench

go 1.23
