//! Training loop around `train.ft` and `sparse.ft`: a graph, and the state carried from step to step.

#[allow(clippy::duplicate_mod)] // the tests include all training programs in one crate
#[path = "../support/adam.rs"]
mod adam;

use adam::Parameter;
use ndarray::{Array1, ArrayD, IxDyn};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::error::Error;
use std::path::Path;
use taffeta::{Call, Function, Options, Program, Sparse, StaticValue};

/// Number of different words in Cora, and in a graph made here.
const WORDS: usize = 1433;

/// Nodes, each with words and a class.
pub struct Graph {
    /// Bounds of each node's words: those of node i are `word[start[i]..start[i + 1]]`.
    start: Array1<i32>,
    word: Array1<i32>,
    /// Bounds of each node's neighbours, itself included: those of node i are `origin[first[i]..first[i + 1]]`.
    first: Array1<i32>,
    origin: Array1<i32>,
    /// Values of the matrices: the weight of each word in its node, and a 1 for each neighbour.
    weights: Vec<f32>,
    ones: Vec<f32>,
    labels: Array1<i32>,
    words: usize,
    classes: usize,
    /// Number of the first nodes, whose classes are known in training.
    pub known: usize,
    /// Number of the last nodes, whose classes are guessed in the end.
    pub test: usize,
}

impl Graph {
    /// Reads Cora with the split that the literature uses (Planetoid's) from a folder of published data; `None` if it
    /// is not there.
    ///
    /// # Errors
    ///
    /// Malformed files.
    pub fn cora(folder: &Path) -> Result<Option<Graph>, Box<dyn Error>> {
        let [edges, words, labels] =
            ["cora_edges.mtx", "cora_features.mtx", "cora_labels.txt"].map(|name| folder.join("graphs").join(name));
        if !edges.is_file() || !words.is_file() || !labels.is_file() {
            return Ok(None);
        }
        let labels = std::fs::read_to_string(labels)?.lines().map(str::parse).collect::<Result<Vec<i32>, _>>()?;
        let (edges, words) = (coordinates(&edges)?, coordinates(&words)?);
        Ok(Some(Graph::new(labels, &edges, &words, WORDS, 140, 1000)?))
    }

    /// Makes a graph in which nodes of a class share most of their edges and a third of their words.
    ///
    /// # Errors
    ///
    /// Only faults of this file.
    pub fn made(n: usize, classes: usize) -> Result<Graph, Box<dyn Error>> {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut labels: Vec<i32> = (0..n).map(|i| (i % classes) as i32).collect();
        labels.shuffle(&mut random);
        let own = WORDS / classes;
        let mut edges = Vec::new();
        let mut contents = Vec::new();
        for i in 0..n {
            while edges.len() < 3 * (i + 1) {
                let j = random.random_range(0..n);
                if labels[i] == labels[j] || random.random_bool(0.03) {
                    edges.push((i, j));
                }
            }
            for k in 0..12 {
                let of_class = labels[i] as usize * own + random.random_range(0..own);
                contents.push((i, if k < 4 { of_class } else { random.random_range(0..WORDS) }));
            }
        }
        Graph::new(labels, &edges, &contents, WORDS, 20 * classes, n / 3)
    }

    fn new(
        labels: Vec<i32>,
        edges: &[(usize, usize)],
        contents: &[(usize, usize)],
        words: usize,
        known: usize,
        test: usize,
    ) -> Result<Graph, Box<dyn Error>> {
        let n = labels.len();
        let both = edges.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
        let (first, origin) = rows(n, n, both.chain((0..n).map(|i| (i, i))))?;
        let (start, word) = rows(n, words, contents.iter().copied())?;
        let classes = labels.iter().max().map_or(0, |c| *c as usize + 1);
        if labels.iter().any(|c| *c < 0) || known + test > n {
            return Err("the classes of some nodes are not known".into());
        }
        let of = |i: usize| (start[i + 1] - start[i]) as usize;
        let weights = (0..n).flat_map(|i| std::iter::repeat_n(1.0 / of(i) as f32, of(i))).collect();
        let (ones, labels) = (vec![1.0; origin.len()], Array1::from(labels));
        Ok(Graph { start, word, first, origin, weights, ones, labels, words, classes, known, test })
    }

    /// Returns the words of all nodes and the edges between them, as matrices by rows.
    fn matrices(&self) -> Result<[Sparse<'_>; 2], Box<dyn Error>> {
        let n = self.labels.len();
        let lists = [&self.start, &self.word, &self.first, &self.origin].map(|list| list.as_slice());
        let [Some(start), Some(word), Some(first), Some(origin)] = lists else {
            return Err("the arrays of a graph are contiguous".into());
        };
        let words = Sparse::csr(start, word, &self.weights, [n, self.words]);
        Ok([words, Sparse::csr(first, origin, &self.ones, [n, n])])
    }
}

/// Representation of the graph in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lists of edges and of words (`train.ft`).
    Lists,
    /// Matrices in CSR (`sparse.ft`).
    Matrices,
}

impl Form {
    /// Returns the path of the program's file in the folder of examples.
    pub fn file(self) -> &'static str {
        match self {
            Form::Lists => "gat/train.ft",
            Form::Matrices => "gat/sparse.ft",
        }
    }
}

/// Sorts pairs of a row and a column by rows, and drops duplicates; returns where each row begins, and the columns.
fn rows(
    n: usize,
    columns: usize,
    pairs: impl Iterator<Item = (usize, usize)>,
) -> Result<(Array1<i32>, Array1<i32>), Box<dyn Error>> {
    let mut pairs: Vec<(usize, usize)> = pairs.collect();
    if pairs.iter().any(|(i, j)| *i >= n || *j >= columns) {
        return Err(format!("a place outside of a matrix of {n} x {columns}").into());
    }
    pairs.sort_unstable();
    pairs.dedup();
    let begin = |i: usize| pairs.partition_point(|(row, _)| *row < i) as i32;
    Ok(((0..=n).map(begin).collect(), pairs.iter().map(|(_, j)| *j as i32).collect()))
}

/// Reads the coordinates in a Matrix Market file, counted from 0.
fn coordinates(path: &Path) -> Result<Vec<(usize, usize)>, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let mut lines = text.lines().filter(|l| !l.starts_with('%')).map(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<usize>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(i)), Some(Ok(j))) if i > 0 && j > 0 => Ok((i, j)),
            _ => Err(format!("{}: `{line}` is not a place in a matrix", path.display())),
        }
    });
    lines.next().ok_or_else(|| format!("{}: it is empty", path.display()))??; // skip the sizes
    Ok(lines.map(|p| p.map(|(i, j)| (i - 1, j - 1))).collect::<Result<_, _>>()?)
}

/// Hyperparameters of training: as in the paper, but with a fixed number of epochs.
pub struct Plan {
    pub heads: usize,
    pub hidden: usize,
    pub epochs: usize,
    pub rate: f32,
    pub decay: f32,
    pub drop: f32,
}

/// Entries of a program, compiled for a graph.
pub struct Trainer<'p> {
    graph: &'p Graph,
    /// Graph as matrices, unless the program takes lists.
    matrices: Option<[Sparse<'p>; 2]>,
    plan: &'p Plan,
    init: Function,
    step: Function,
    classify: Function,
}

/// Result of training from one seed.
pub struct Course {
    /// Loss of every epoch.
    pub losses: Vec<f64>,
    /// Share of test nodes whose class is guessed rightly.
    pub accuracy: f64,
    /// Seconds per epoch.
    pub seconds: f64,
}

impl<'p> Trainer<'p> {
    /// Compiles the program of that form.
    ///
    /// # Errors
    ///
    /// Only faults of Taffeta.
    pub fn new(form: Form, program: &Program, graph: &'p Graph, plan: &'p Plan) -> Result<Trainer<'p>, Box<dyn Error>> {
        let sizes =
            [("feats", graph.words), ("heads", plan.heads), ("hidden", plan.hidden), ("classes", graph.classes)];
        let (mut statics, mut sized) = (Options::default(), Options::default());
        for (name, value) in sizes {
            statics = statics.set(name, StaticValue::Int(value as i128));
            sized = sized.size(name, value as i64);
        }
        let matrices = if form == Form::Matrices { Some(graph.matrices()?) } else { None };
        Ok(Trainer {
            graph,
            matrices,
            plan,
            init: program.compile("init", &statics)?,
            step: program.compile("step", &sized.clone().schedule("fast"))?,
            classify: program.compile("classify", &sized)?,
        })
    }

    /// Passes the graph to a call.
    fn pass<'f, 'a>(&'a self, call: Call<'f, 'a>) -> Call<'f, 'a> {
        let graph = self.graph;
        match &self.matrices {
            Some([words, edges]) => call.sparse("words", words).sparse("edges", edges),
            None => {
                let call = call.input("start", graph.start.view()).input("word", graph.word.view());
                call.input("first", graph.first.view()).input("origin", graph.origin.view())
            }
        }
    }

    /// Trains from scratch.
    ///
    /// # Errors
    ///
    /// Only faults of Taffeta.
    pub fn train(&self, seed: i64) -> Result<Course, Box<dyn Error>> {
        let (graph, plan) = (self.graph, self.plan);
        let weights = self.init.call().scalar("seed", seed).run()?;
        let zeros = |shape: &[usize]| ArrayD::<f32>::zeros(IxDyn(shape));
        let mut network = vec![
            Parameter::new("b1", zeros(&[plan.heads, plan.hidden])),
            Parameter::new("b2", zeros(&[1, graph.classes])),
        ];
        for name in ["w1", "src1", "dst1", "w2", "src2", "dst2"] {
            network.push(Parameter::new(name, weights.array(name)?));
        }
        let start = std::time::Instant::now();
        let mut losses = Vec::new();
        for epoch in 1..=plan.epochs {
            let call = self.pass(self.step.call()).input("labels", graph.labels.view());
            let call = call.scalar("known", graph.known as i32).scalar("t", epoch as i32).scalar("rate", plan.rate);
            let call = call.scalar("decay", plan.decay).scalar("drop", plan.drop);
            let call = call.scalar("seed", 1_000_000 * (seed + 1) + epoch as i64);
            losses.push(f64::from(adam::change(call, &mut network).run()?.scalar::<f32>("l")?));
        }
        let seconds = start.elapsed().as_secs_f64() / plan.epochs as f64;
        let guessed = adam::read(self.pass(self.classify.call()), &network).run()?.array::<i64>("out")?;
        let tested = graph.labels.len() - graph.test;
        let right = guessed.iter().zip(&graph.labels).skip(tested).filter(|(a, b)| **a == i64::from(**b)).count();
        Ok(Course { losses, accuracy: right as f64 / graph.test as f64, seconds })
    }
}
